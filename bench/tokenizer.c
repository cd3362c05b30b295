/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a tokenizer loads and encodes, on one core:
 *
 *     bench_tokenizer DIR [TEXT-FILE]
 *
 * Without a file: generated prose.  The first pass meets an empty piece
 * cache, the rest a warm one. */
#include <stdio.h>

#include "base/clock.h"
#include "base/mapped_file.h"
#include "base/rng.h"
#include "base/str.h"
#include "llm/text/tokenizer.h"

/* Words of two to four syllables; low numbers, hence some words, are far more
 * frequent, as in a language. */
static void add_word(fm_str *out, uint64_t i)
{
    static const char *const syllable[] = {"the",  "re", "in",  "con",  "ing", "to", "ver", "al",
                                           "ment", "ex", "pre", "tion", "a",   "is", "of",  "and"};
    const uint32_t           draw       = fm_rng_u32(1, i);
    const uint32_t           word = (uint32_t)(((uint64_t)draw * draw >> 32) * (draw >> 8) >> 32);
    for (uint32_t k = 0, n = 1 + word % 4; k < n; k++)
        fm_str_puts(out, syllable[fm_rng_u32(word, k) % 16]);
}

static void write_prose(fm_str *out, size_t n)
{
    for (uint64_t i = 0; out->len < n; i++) {
        add_word(out, i);
        const uint32_t end = fm_rng_u32(2, i) % 64;
        fm_str_puts(out, end == 0   ? ".\n\n"
                         : end < 4  ? ". "
                         : end < 9  ? ", "
                         : end == 9 ? " 1984 "
                                    : " ");
    }
}

static fm_status measure(const fm_tokenizer *t, const char *text, size_t n)
{
    fm_tokenizer_scratch *s     = NULL;
    fm_ids                ids   = {0};
    fm_status             rc    = fm_tokenizer_scratch_create(&s, t);
    double                began = fm_now(), cold = 0;
    int                   passes = 0;
    while (rc == FM_OK && (passes < 2 || fm_now() - began < 1)) {
        ids.n = 0;
        rc    = fm_encode(t, s, text, n, 0, &ids);
        if (passes++ == 0) {
            cold  = fm_now() - began;
            began = fm_now();
        }
    }
    if (rc == FM_OK)
        printf("%zu bytes, %zu tokens: %.1f MB/s first, %.1f MB/s then\n", n, ids.n,
               1e-6 * (double)n / cold, 1e-6 * (double)n * (passes - 1) / (fm_now() - began));
    fm_ids_fini(&ids);
    fm_tokenizer_scratch_destroy(s);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: bench_tokenizer DIR [TEXT-FILE]\n");
        return 2;
    }
    fm_tokenizer  *t     = NULL;
    fm_mapped_file file  = {0};
    fm_str         prose = {0};
    const double   began = fm_now();
    fm_status      rc    = fm_tokenizer_open(&t, argv[1]);
    if (rc == FM_OK) printf("loaded in %.3f s, %d ids\n", fm_now() - began, fm_tokenizer_size(t));
    if (rc == FM_OK && argc == 3) rc = fm_mapped_file_open(&file, argv[2]);
    if (argc == 2) write_prose(&prose, 4 << 20);
    if (rc == FM_OK)
        rc = argc == 3 ? measure(t, file.data, file.size) : measure(t, prose.text, prose.len);
    if (rc != FM_OK) fprintf(stderr, "bench_tokenizer: %s\n", fm_why());

    fm_str_fini(&prose);
    fm_mapped_file_close(&file);
    fm_tokenizer_close(t);
    return rc == FM_OK ? 0 : 2;
}
