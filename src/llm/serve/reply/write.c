/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/reply/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm/serve/read/context_error.h"

/* Bytes of the character at s, or 0 if it is none. */
static size_t char_len(const unsigned char *s, size_t n)
{
    const unsigned char c = s[0];
    if (c < 0x80) return 1;
    const size_t len = c >= 0xc2 && c < 0xe0   ? 2
                       : c >= 0xe0 && c < 0xf0 ? 3
                       : c >= 0xf0 && c < 0xf5 ? 4
                                               : 0;
    if (!len || len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) || (c == 0xf0 && s[1] < 0x90) ||
        (c == 0xf4 && s[1] > 0x8f))
        return 0;
    return len;
}

int fm__is_utf8(const char *text, size_t len)
{
    for (size_t i = 0, n; i < len; i += n)
        if (!(n = char_len((const unsigned char *)text + i, len - i))) return 0;
    return 1;
}

static void put_escape(fm_str *out, unsigned char c)
{
    switch (c) {
    case '"': fm_str_add(out, "\\\"", 2); break;
    case '\\': fm_str_add(out, "\\\\", 2); break;
    case '\n': fm_str_add(out, "\\n", 2); break;
    case '\r': fm_str_add(out, "\\r", 2); break;
    case '\t': fm_str_add(out, "\\t", 2); break;
    default: fm_str_printf(out, "\\u%04x", c);
    }
}

void fm__put_escaped(fm_str *out, const char *text, size_t len)
{
    const unsigned char *s    = (const unsigned char *)text;
    size_t               from = 0, i = 0; /* [from, i) needs no change */
    while (i < len) {
        const size_t n = char_len(s + i, len - i);
        if (n && s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' && s[i] != 0x7f) {
            i += n;
            continue;
        }
        fm_str_add(out, text + from, i - from);
        if (n) put_escape(out, s[i]);
        else fm_str_add(out, "\xef\xbf\xbd", 3);
        from = ++i;
    }
    fm_str_add(out, text + from, i - from);
}

void fm__put_text(fm_str *out, const char *text, size_t len)
{
    fm_str_add(out, "\"", 1);
    fm__put_escaped(out, text, len);
    fm_str_add(out, "\"", 1);
}

void fm__put_word(fm_str *out, const char *text)
{
    if (text) fm__put_text(out, text, strlen(text));
    else fm_str_puts(out, "null");
}

void fm__put_number(fm_str *out, double x)
{
    if (!(x > -9999.0)) x = -9999.0; /* what OpenAI sends for "never" */
    if (x > 1e300) x = 1e300;
    fm_str_printf(out, "%.9g", x);
}

void fm__put_float(fm_str *out, float x)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x) break;
    }
    fm_str_puts(out, text);
}

void fm__put_bytes(fm_str *out, const char *bytes, size_t len)
{
    fm_str_puts(out, "[");
    for (size_t i = 0; i < len; i++) fm_str_printf(out, i ? ",%d" : "%d", (unsigned char)bytes[i]);
    fm_str_puts(out, "]");
}

static const char *kind_of(int status)
{
    switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 408: return "timeout_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

/* The field a sentence speaks of: "request: top_p is 2, …" -> top_p. */
static void put_param(fm_str *out, const char *why)
{
    static const char lead[] = "request: ";
    const char       *name   = why + strlen(lead);
    size_t            n      = 0;
    if (!strncmp(why, lead, strlen(lead)))
        n = strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789.[]");
    const int is_field =
        n > 0 && (name[n] == ':' || !strncmp(name + n, " is ", 4) ||
                  !strncmp(name + n, " has ", 5) || !strncmp(name + n, " contains ", 10));
    if (is_field) fm__put_text(out, name, n);
    else fm_str_puts(out, "null");
}

void fm__put_error(fm_str *out, int status, const char *why)
{
    const int   no_model = status == 404 && !strncmp(why, "the model", 9);
    const char *code     = no_model                    ? "\"model_not_found\""
                           : fm__is_context_error(why) ? "\"context_length_exceeded\""
                                                       : "null";
    fm_str_puts(out, "{\"error\":{\"message\":");
    fm__put_word(out, why);
    fm_str_printf(out, ",\"type\":\"%s\",\"param\":", kind_of(status));
    if (no_model)
        fm_str_puts(out, "\"model\"");
    else put_param(out, why);
    fm_str_printf(out, ",\"code\":%s},\"object\":\"error\",\"message\":", code);
    fm__put_word(out, why);
    fm_str_printf(out, ",\"type\":\"%s\",\"param\":", kind_of(status));
    if (no_model)
        fm_str_puts(out, "\"model\"");
    else put_param(out, why);
    fm_str_printf(out, ",\"code\":%d}", status);
}

void fm__put_messages_error(fm_str *out, int status, const char *why)
{
    const char *kind  = kind_of(status);
    fm_str      words = {0};
    if (fm__is_context_error(why)) fm__put_messages_context_error(&words, why);
    fm_str_printf(out, "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":",
                  !strcmp(kind, "server_error") ? "api_error" : kind);
    fm__put_word(out, words.len ? words.text : why);
    fm_str_puts(out, "}}");
    fm_str_fini(&words);
}

void fm__put_ollama_error(fm_str *out, int status, const char *why)
{
    (void)status;
    fm_str_puts(out, "{\"error\":");
    fm__put_word(out, why);
    fm_str_puts(out, "}");
}
