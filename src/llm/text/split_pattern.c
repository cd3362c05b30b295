/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns in tokenizer.json are written for Oniguruma.  PCRE2 agrees on
 * nearly all of what they use; here the rest is spelled out, or refused:
 *
 *     \s         PCRE2 counts U+180E as space, Unicode no longer does
 *     \w         PCRE2 has all numbers and only the underscore
 *     \v         one character there, a class here
 *     \p{Han}    the script there, the script's extensions here
 *     [a&&[^b]]  not known here
 *     x{2}+      repeated there, possessive here */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "llm/text/splits_internal.h"

#include <ctype.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#define SPACE     "\\p{White_Space}"
#define NOT_SPACE "\\P{White_Space}"
#define WORD      "\\p{L}\\p{M}\\p{Nd}\\p{Pc}"

struct translation {
    const char *pattern; /* what is left to read */
    const char *file;
    fm_str     *out;
};

static fm_status refuse(const struct translation *t, const char *what)
{
    return fm_fail(FM_E_NOSUP, "%s: pre_tokenizer: %s in a split pattern is not supported", t->file,
                   what);
}

static void copy(struct translation *t, size_t n)
{
    fm_str_add(t->out, t->pattern, n);
    t->pattern += n;
}

static void replace(struct translation *t, size_t n, const char *with)
{
    fm_str_puts(t->out, with);
    t->pattern += n;
}

static size_t hex_digits(const char *s, size_t most)
{
    size_t n = 0;
    while (n < most && isxdigit((unsigned char)s[n])) n++;
    return n;
}

/* \xHH names a byte, \x{H…} a character, \uHHHH a character. */
static fm_status translate_hex(struct translation *t)
{
    const char *p = t->pattern;
    if (p[1] == 'x' && p[2] == '{') {
        const size_t n = hex_digits(p + 3, 6);
        if (n == 0 || p[3 + n] != '}') return refuse(t, "a \\x{...} without hexadecimal digits");
        copy(t, 4 + n);
        return FM_OK;
    }
    if (p[1] == 'x') {
        if (hex_digits(p + 2, 2) < 2 || p[2] > '7') return refuse(t, "a \\x beyond \\x7F");
        copy(t, 4);
        return FM_OK;
    }
    if (hex_digits(p + 2, 4) < 4) return refuse(t, "a \\u without four digits");
    fm_str_printf(t->out, "\\x{%.4s}", p + 2);
    t->pattern += 6;
    return FM_OK;
}

static int is_script(const char *name, int n)
{
    char       test[64];
    int        error;
    PCRE2_SIZE at;
    if (snprintf(test, sizeof test, "\\p{sc:%.*s}", n, name) >= (int)sizeof test) return 0;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)test, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &at, NULL);
    const int found = code != NULL;
    pcre2_code_free(code);
    return found;
}

static fm_status translate_property(struct translation *t)
{
    const char *name = t->pattern + 3, *end = t->pattern[2] == '{' ? strchr(name, '}') : NULL;
    if (!end) return refuse(t, "a \\p without {...}");
    const int negated = *name == '^';
    name += negated;
    const int n = (int)(end - name);
    if (n > 2 && is_script(name, n)) {
        const int complement = negated != (t->pattern[1] == 'P');
        fm_str_printf(t->out, complement ? "\\P{sc:%.*s}" : "\\p{sc:%.*s}", n, name);
        t->pattern = end + 1;
    } else {
        copy(t, (size_t)(end - t->pattern) + 1);
    }
    return FM_OK;
}

static fm_status translate_escape(struct translation *t, int in_class)
{
    const unsigned char c = (unsigned char)t->pattern[1];
    switch (c) {
    case 0: return refuse(t, "a lone backslash at the end");
    case 's': replace(t, 2, SPACE); return FM_OK;
    case 'S': replace(t, 2, NOT_SPACE); return FM_OK;
    case 'w': replace(t, 2, in_class ? WORD : "[" WORD "]"); return FM_OK;
    case 'W':
        if (in_class) return refuse(t, "\\W inside [...]");
        replace(t, 2, "[^" WORD "]");
        return FM_OK;
    case 'v': replace(t, 2, "\\x0b"); return FM_OK;
    case 'd':
    case 'D':
    case 'n':
    case 'r':
    case 't':
    case 'f': copy(t, 2); return FM_OK;
    case 'x':
    case 'u': return translate_hex(t);
    case 'p':
    case 'P': return translate_property(t);
    default: break;
    }
    if (isalnum(c)) return refuse(t, (const char[]){'\\', (char)c, 0});
    copy(t, c < 0x80 ? 2 : 1);
    return FM_OK;
}

/* The members of a class up to, not including, its ']' or "&&". */
static fm_status translate_members(struct translation *t)
{
    for (int first = 1;; first = 0) {
        switch (*t->pattern) {
        case 0: return refuse(t, "a [ without ]");
        case '\\': FM_TRY(translate_escape(t, 1)); break;
        case '[': return refuse(t, "a [ inside [...]");
        case ']':
            if (!first) return FM_OK;
            return refuse(t, "an empty [...]");
        case '&':
            if (t->pattern[1] == '&') return FM_OK;
            copy(t, 1);
            break;
        default: copy(t, 1);
        }
    }
}

/* [A&&[^B]]: a member of A that is not in B. */
static fm_status translate_class(struct translation *t)
{
    fm_str    all = {0}, *out = t->out, but = {0};
    fm_status rc      = FM_OK;
    const int negated = t->pattern[1] == '^';

    t->out = &all;
    copy(t, negated ? 2 : 1);
    FM_GO(translate_members(t));
    if (*t->pattern == '&') {
        if (negated || strncmp(t->pattern, "&&[^", 4) != 0) {
            rc = refuse(t, "&& other than [...&&[^...]]");
            goto out;
        }
        t->out = &but;
        t->pattern += 4;
        FM_GO(translate_members(t));
        if (strncmp(t->pattern, "]]", 2) != 0) {
            rc = refuse(t, "&& other than [...&&[^...]]");
            goto out;
        }
        t->pattern++;
    }
    t->pattern++;
    if (but.len) fm_str_printf(out, "(?:(?![%s])%s])", but.text, all.text);
    else fm_str_printf(out, "%s]", all.text);
out:
    t->out = out;
    fm_str_fini(&all);
    fm_str_fini(&but);
    return rc;
}

static fm_status translate_group(struct translation *t)
{
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    if (t->pattern[1] == '*') return refuse(t, "a (*");
    if (t->pattern[1] != '?') {
        copy(t, 1);
        return FM_OK;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t n = strlen(known[i]);
        if (strncmp(t->pattern, known[i], n) == 0) {
            copy(t, n);
            return FM_OK;
        }
    }
    return refuse(t, "a (? other than (?: (?= (?! (?<= (?<! (?> (?i:");
}

static fm_status translate_braces(struct translation *t)
{
    const size_t n = strcspn(t->pattern, "}");
    if (t->pattern[1] == ',') return refuse(t, "a {,n}");
    if (t->pattern[n] == '}' && t->pattern[n + 1] && strchr("+?", t->pattern[n + 1]))
        return refuse(t, "a + or ? behind {...}");
    copy(t, 1);
    return FM_OK;
}

fm_status fm__pattern_translate(const char *pattern, const char *file, fm_str *out)
{
    struct translation t = {pattern, file, out};
    if (strlen(pattern) > FM__MAX_PATTERN_BYTES)
        return fm_fail(FM_E_FORMAT, "%s: pre_tokenizer: a split pattern is longer than %d bytes",
                       file, FM__MAX_PATTERN_BYTES);
    /* Spaces that end no line are tried from each of them: quadratic.  The
     * leftmost match always begins where the run of spaces does. */
    if (strcmp(pattern, "\\s+$") == 0) fm_str_puts(out, "(?<!" SPACE ")");
    while (*t.pattern) {
        switch (*t.pattern) {
        case '\\': FM_TRY(translate_escape(&t, 0)); break;
        case '[': FM_TRY(translate_class(&t)); break;
        case '(': FM_TRY(translate_group(&t)); break;
        case '{': FM_TRY(translate_braces(&t)); break;
        default: copy(&t, 1);
        }
    }
    return FM_OK;
}

void fm__pattern_quote(const char *literal, fm_str *out)
{
    for (; *literal; literal++) {
        if (ispunct((unsigned char)*literal)) fm_str_puts(out, "\\");
        fm_str_add(out, literal, 1);
    }
}
