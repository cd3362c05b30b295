/* SPDX-License-Identifier: Apache-2.0 */
/* tiktoken.model: one line per token, its bytes in base64 and its rank.  The
 * rank is the id, and any two tokens whose join is a token merge at the rank
 * of the join.  Special tokens come from tokenizer_config.json; of the 256
 * ids after the last rank, those not named there are reserved. */
#include <stdio.h>
#include <string.h>

#include "base/mapped_file.h"
#include "llm/text/tokenizer_internal.h"

/* The split of Moonlight and Kimi: Han runs; words with the case they have;
 * up to three digits; punctuation; line ends; spaces. */
#define UPPER  "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define LOWER  "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
static const char kimi_pattern[] = "[\\p{Han}]+"
                                   "|" BEFORE UPPER "*" LOWER "+" SUFFIX
                                   "|" BEFORE UPPER "+" LOWER "*" SUFFIX
                                   "|\\p{N}{1,3}"
                                   "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                                   "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

enum { N_RESERVED = 256, MAX_TOKEN_BYTES = 1024 };

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Returns the bytes written, or 0 when text[0..n) is not base64 of 1 to
 * MAX_TOKEN_BYTES bytes. */
static size_t decode_base64(const char *text, size_t n, char *out)
{
    while (n > 0 && text[n - 1] == '=') n--;
    if (n % 4 == 1 || n * 3 / 4 > MAX_TOKEN_BYTES) return 0;
    size_t   n_out = 0;
    uint32_t bits  = 0;
    for (size_t i = 0; i < n; i++) {
        const int value = base64_value(text[i]);
        if (value < 0) return 0;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4) out[n_out++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    return n_out;
}

/* line[0..n) -> a token.  0: malformed. */
static int read_line(fm__vocab *v, const char *line, size_t n, fm_status *rc)
{
    const char *space = memchr(line, ' ', n);
    if (!space) return 0;
    int32_t     rank = 0;
    const char *end  = line + n, *p = space + 1;
    for (; p < end && *p >= '0' && *p <= '9' && rank < FM__MAX_TOKENS; p++)
        rank = rank * 10 + (*p - '0');
    if (p == space + 1 || p != end || rank >= FM__MAX_TOKENS) return 0;

    char         bytes[MAX_TOKEN_BYTES];
    const size_t n_bytes = decode_base64(line, (size_t)(space - line), bytes);
    if (n_bytes == 0) return 0;
    *rc = fm__vocab_put(v, rank, bytes, n_bytes);
    return 1;
}

static fm_status read_lines(fm__vocab *v, const char *text, size_t size, const char *path)
{
    fm_status rc     = FM_OK;
    int       number = 1;
    for (const char *p = text, *end = text + size; p < end && rc == FM_OK; number++) {
        const char  *newline = memchr(p, '\n', (size_t)(end - p));
        const size_t n       = (size_t)((newline ? newline : end) - p);
        if (n && !read_line(v, p, n, &rc))
            return fm_fail(FM_E_FORMAT, "%s: line %d: expected base64 and an id below %d", path,
                           number, FM__MAX_TOKENS);
        p += n + 1;
    }
    return rc;
}

/* Every way to cut a token into two tokens is a merge.  Returns how many there
 * are; b NULL: only counts. */
static size_t add_merges(const fm__vocab *v, fm__bpe *b)
{
    size_t n = 0;
    for (int32_t id = 0; id < v->size; id++) {
        const fm__token *t    = &v->token[id];
        const char      *text = v->bytes.text + t->at;
        for (uint32_t k = 1; k < t->n; k++) {
            const int32_t left = fm__vocab_find(v, text, k);
            if (left < 0) continue;
            const int32_t right = fm__vocab_find(v, text + k, t->n - k);
            if (right < 0) continue;
            if (b) fm__bpe_add(b, left, right, id, id);
            n++;
        }
    }
    return n;
}

static fm_status read_ranks(fm_tokenizer *t, const char *path)
{
    fm_mapped_file f = {0};
    FM_TRY(fm_mapped_file_open(&f, path));
    const fm_status rc = read_lines(&t->vocab, f.data, f.size, path);
    fm_mapped_file_close(&f);
    FM_TRY(rc);
    FM_TRY(fm__vocab_init(&t->vocab, (size_t)t->vocab.size));
    for (int32_t id = 0; id < t->vocab.size; id++)
        if (t->vocab.token[id].n) fm__vocab_index(&t->vocab, id);

    FM_TRY(fm__bpe_init(&t->bpe, add_merges(&t->vocab, NULL)));
    add_merges(&t->vocab, &t->bpe);
    t->bpe.whole_first = 1;
    const int missing  = fm__bpe_bind_bytes(&t->bpe, &t->vocab);
    if (missing >= 0) return fm_fail(FM_E_FORMAT, "%s has no token for byte 0x%02X", path, missing);
    return FM_OK;
}

static fm_status read_special(fm_tokenizer *t, const json_t *config, int32_t id, const char *file)
{
    const fm_json_at at = {file, "added_tokens_decoder[]."};
    char             key[16], reserved[40];
    snprintf(key, sizeof key, "%d", (int)id);
    const json_t   *entry = json_object_get(json_object_get(config, "added_tokens_decoder"), key);
    fm__added_entry e;
    if (entry) {
        FM_TRY(fm__added_entry_read(&e, entry, at));
    } else {
        snprintf(reserved, sizeof reserved, "<|reserved_token_%d|>", (int)id);
        e = (fm__added_entry){.content = reserved, .special = 1};
    }
    e.id         = id;
    e.normalized = 0; /* all are looked for at once */
    return fm__tokenizer_add(t, &e);
}

fm_status fm__tokenizer_read_tiktoken(fm_tokenizer *t, const char *path, const json_t *config,
                                      const char *config_file)
{
    FM_TRY(read_ranks(t, path));
    FM_TRY(fm__splits_add(&t->splits, kimi_pattern, FM__KEEP_MATCHES, path));
    const int32_t first = t->vocab.size;
    if (first > FM__MAX_TOKENS - N_RESERVED)
        return fm_fail(FM_E_FORMAT, "%s has more than %d tokens", path,
                       FM__MAX_TOKENS - N_RESERVED);
    for (int32_t id = first; id < first + N_RESERVED; id++)
        FM_TRY(read_special(t, config, id, config_file));
    return FM_OK;
}
