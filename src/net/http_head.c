/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "net/http_head.h"

#include <string.h>
#include <strings.h>

static int refuse(int status, const char **why, const char *words)
{
    *why = words;
    return status;
}

static int is_token_char(unsigned char c)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return 1;
    return c && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static int is_token(const char *s)
{
    if (!*s) return 0;
    while (is_token_char((unsigned char)*s)) s++;
    return !*s;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* In place; 0 if an escape is broken or hides a NUL. */
static int percent_decode(char *s)
{
    char *to = s;
    for (; *s; s++) {
        if (*s != '%') {
            *to++ = *s;
            continue;
        }
        const int hi = hex_digit(s[1]), lo = hi < 0 ? -1 : hex_digit(s[2]);
        if (lo < 0 || hi * 16 + lo == 0) return 0;
        *to++ = (char)(hi * 16 + lo);
        s += 2;
    }
    *to = 0;
    return 1;
}

/* "/path?query", or the absolute form that proxies send. */
static int parse_target(fm_http_head *h, char *target, const char **why)
{
    if (!strncasecmp(target, "http://", 7) || !strncasecmp(target, "https://", 8)) {
        target = strchr(strchr(target, ':') + 3, '/');
        if (!target) return refuse(400, why, "the request target has no path");
    }
    if (*target != '/' && strcmp(target, "*"))
        return refuse(400, why, "the request target is no path");
    h->path  = target;
    char *q  = strchr(target, '?');
    h->query = q ? q + 1 : target + strlen(target);
    if (q) *q = 0;
    if (!percent_decode(h->path)) return refuse(400, why, "a broken escape in the path");
    return 0;
}

/* METHOD SP target SP HTTP/1.x */
static int parse_line(fm_http_head *h, char *line, const char **why)
{
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version) return refuse(400, why, "the request line is not METHOD TARGET VERSION");
    *target++  = 0;
    *version++ = 0;
    h->method  = line;
    if (!is_token(line)) return refuse(400, why, "the method is no word");
    for (const unsigned char *c = (unsigned char *)target; *c; c++)
        if (*c < 0x21 || *c == 0x7f) return refuse(400, why, "a control character in the target");
    if (!strcmp(version, "HTTP/1.1")) h->minor = 1;
    else if (!strcmp(version, "HTTP/1.0")) h->minor = 0;
    else if (!strncmp(version, "HTTP/", 5)) return refuse(505, why, "only HTTP/1.0 and HTTP/1.1");
    else return refuse(400, why, "the request line is not METHOD TARGET VERSION");
    return parse_target(h, target, why);
}

static int parse_field(fm_http_head *h, char *line, const char **why)
{
    if (h->n_field == FM_HTTP_MAX_FIELDS) return refuse(431, why, "too many header fields");
    char *colon = strchr(line, ':');
    if (!colon) return refuse(400, why, "a header line without a colon");
    *colon = 0;
    if (!is_token(line)) return refuse(400, why, "a header name that is no word");
    char *value = colon + 1;
    value += strspn(value, " \t");
    size_t n = strlen(value);
    while (n && (value[n - 1] == ' ' || value[n - 1] == '\t')) value[--n] = 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)value[i] < 0x20 && value[i] != '\t')
            return refuse(400, why, "a control character in a header");
    h->field[h->n_field++] = (fm_http_field){line, value};
    return 0;
}

/* Cuts the next line off; NULL if a bare CR, LF or NUL is in the way. */
static char *next_line(char **at, char *end)
{
    char *line = *at;
    char *cr   = memchr(line, '\r', (size_t)(end - line));
    if (!cr || cr + 1 >= end || cr[1] != '\n') return NULL;
    if (memchr(line, '\n', (size_t)(cr - line)) || memchr(line, 0, (size_t)(cr - line)))
        return NULL;
    *cr = 0;
    *at = cr + 2;
    return line;
}

static int parse_length(fm_http_head *h, const char *value, const char **why)
{
    int64_t n = 0;
    if (!*value) return refuse(400, why, "Content-Length is empty");
    for (; *value; value++) {
        if (*value < '0' || *value > '9' || n > INT64_MAX / 10 - 10)
            return refuse(400, why, "Content-Length is no number");
        n = n * 10 + (*value - '0');
    }
    if (h->content_length >= 0 && h->content_length != n)
        return refuse(400, why, "two different Content-Lengths");
    h->content_length = n;
    return 0;
}

static int has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    while (*list) {
        list += strspn(list, ", \t");
        const size_t len = strcspn(list, ", \t");
        if (len == n && !strncasecmp(list, word, n)) return 1;
        list += len;
    }
    return 0;
}

/* What the fields say of the message itself; *n_host counts Host fields. */
static int read_fields(fm_http_head *h, int *n_host, const char **why)
{
    for (int i = 0; i < h->n_field; i++) {
        const char *name = h->field[i].name, *value = h->field[i].value;
        if (!strcasecmp(name, "Content-Length")) {
            const int status = parse_length(h, value, why);
            if (status) return status;
        } else if (!strcasecmp(name, "Transfer-Encoding")) {
            if (h->chunked || strcasecmp(value, "chunked"))
                return refuse(501, why, "only the transfer encoding \"chunked\" is understood");
            h->chunked = 1;
        } else if (!strcasecmp(name, "Connection")) {
            if (has_word(value, "close")) h->keep_alive = 0;
            else if (h->minor == 0 && has_word(value, "keep-alive")) h->keep_alive = 1;
        } else if (!strcasecmp(name, "Expect")) {
            if (strcasecmp(value, "100-continue")) return refuse(417, why, "unknown expectation");
            h->expects_continue = h->minor == 1;
        } else if (!strcasecmp(name, "Host")) {
            ++*n_host;
        }
    }
    if (h->chunked && (h->content_length >= 0 || h->minor == 0))
        return refuse(400, why, "a chunked body with Content-Length or in HTTP/1.0");
    return 0;
}

/* The lines behind the first. */
static int parse_fields(fm_http_head *h, char **at, char *end, const char **why)
{
    for (int status = 0; !status;) {
        char *line = next_line(at, end);
        if (!line) return refuse(400, why, "a header line does not end in CR LF");
        if (!*line) return 0;
        status = parse_field(h, line, why);
        if (status) return status;
    }
    return 0;
}

int fm_http_head_parse(fm_http_head *h, char *text, size_t len, const char **why)
{
    int   n_host = 0;
    char *at = text, *end = text + len, *line = next_line(&at, end);
    h->n_field        = 0;
    h->content_length = -1;
    h->chunked = h->expects_continue = 0;
    if (!line) return refuse(400, why, "the request line does not end in CR LF");
    int status    = parse_line(h, line, why);
    h->keep_alive = h->minor == 1;
    if (!status) status = parse_fields(h, &at, end, why);
    if (!status) status = read_fields(h, &n_host, why);
    if (!status && (n_host > 1 || (n_host == 0 && h->minor == 1)))
        return refuse(400, why, "one Host header is needed");
    return status;
}

/* HTTP/1.x NNN words */
static int parse_status_line(fm_http_head *h, int *status, const char *line)
{
    static const char version[] = "HTTP/1.";
    const char       *digits    = line + sizeof version + 1;
    if (strncmp(line, version, sizeof version - 1)) return 0;
    h->minor = line[sizeof version - 1] - '0';
    if (h->minor < 0 || h->minor > 1 || line[sizeof version] != ' ') return 0;
    if (strspn(digits, "0123456789") != 3 || (digits[3] && digits[3] != ' ')) return 0;
    *status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
    return *status >= 100;
}

int fm_http_reply_head_parse(fm_http_head *h, int *status, char *text, size_t len,
                             const char **why)
{
    int   n_host = 0;
    char *at = text, *end = text + len, *line = next_line(&at, end);
    *h = (fm_http_head){.content_length = -1};
    if (!line || !parse_status_line(h, status, line)) return refuse(-1, why, "the reply is no HTTP");
    h->keep_alive = h->minor == 1;
    if (parse_fields(h, &at, end, why) || read_fields(h, &n_host, why)) return -1;
    return 0;
}

const char *fm_http_head_get(const fm_http_head *h, const char *name)
{
    for (int i = 0; i < h->n_field; i++)
        if (!strcasecmp(h->field[i].name, name)) return h->field[i].value;
    return NULL;
}
