/* SPDX-License-Identifier: Apache-2.0 */
/* Merges: their forms in the file, their order, and long runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the first four */
#include <cmocka.h>

#include "base/rng.h"
#include "text_encode.h"

static void merges_come_as_pairs_or_as_strings(void **state)
{
    (void)state;
    static const char *const forms[] = {"[\"a b\",\"ab c\"]", "[[\"a\",\"b\"],[\"ab\",\"c\"]]",
                                        "[[\"a\",\"b\"],\"ab c\"]"};
    for (int i = 0; i < 3; i++) {
        fm_tokenizer *t = parse((tiny){.vocab = ",\"ab\":256,\"abc\":257", .merges = forms[i]});
        check(t, "abcab", 0, "257 256");
        fm_tokenizer_close(t);
    }
}

static void the_lowest_rank_merges_first_and_the_leftmost_of_equals(void **state)
{
    (void)state;
    fm_tokenizer *t = parse((tiny){.vocab  = ",\"aa\":256,\"bc\":257,\"ab\":258",
                                   .merges = "[\"b c\",\"a a\",\"a b\"]"});
    check(t, "aaa", 0, "256 97");
    check(t, "abc", 0, "97 257"); /* not ab, c */
    check(t, "aabc", 0, "256 257");
    check(t, "aaab", 0, "256 258");
    fm_tokenizer_close(t);
}

static void a_whole_token_wins_when_merges_are_ignored(void **state)
{
    (void)state;
    const char   *vocab = ",\"ab\":256,\"xyz\":257";
    fm_tokenizer *t     = parse((tiny){.vocab = vocab, .model = "\"ignore_merges\":true,"});
    check(t, "xyz", 0, "257");
    check(t, "xyzx", 0, "120 121 122 120");
    fm_tokenizer_close(t);
    t = parse((tiny){.vocab = vocab});
    check(t, "xyz", 0, "120 121 122"); /* no merge leads there */
    fm_tokenizer_close(t);
}

/* A vocabulary over a, b, c whose token 256 + r joins two older ones. */
enum { N_RANDOM_MERGES = 200 };
struct random_merges {
    char text[256 + N_RANDOM_MERGES][24]; /* [id], for ids that take part */
    int  left[N_RANDOM_MERGES], right[N_RANDOM_MERGES], n;
};

static int known(const struct random_merges *m, const char *text)
{
    for (int id = 'a'; id < 256 + m->n; id++)
        if (strcmp(m->text[id], text) == 0) return 1;
    return 0;
}

static void draw_merges(struct random_merges *m, uint64_t key)
{
    memset(m, 0, sizeof *m);
    for (int c = 'a'; c <= 'c'; c++) m->text[c][0] = (char)c;
    for (uint64_t i = 0; m->n < N_RANDOM_MERGES && i < 5000; i++) {
        const int pick[2] = {(int)(fm_rng_u32(key, 2 * i) % (3 + (uint32_t)m->n)),
                             (int)(fm_rng_u32(key, 2 * i + 1) % (3 + (uint32_t)m->n))};
        const int left    = pick[0] < 3 ? 'a' + pick[0] : 253 + pick[0];
        const int right   = pick[1] < 3 ? 'a' + pick[1] : 253 + pick[1];
        char      joined[48];
        snprintf(joined, sizeof joined, "%s%s", m->text[left], m->text[right]);
        if (strlen(joined) >= sizeof m->text[0] || known(m, joined)) continue;
        strcpy(m->text[256 + m->n], joined);
        m->left[m->n]    = left;
        m->right[m->n++] = right;
    }
}

static fm_tokenizer *random_tokenizer(const struct random_merges *m)
{
    fm_str vocab = {0}, merges = {0};
    fm_str_puts(&merges, "[");
    for (int r = 0; r < m->n; r++) {
        fm_str_printf(&vocab, ",\"%s\":%d", m->text[256 + r], 256 + r);
        fm_str_printf(&merges, "%s\"%s %s\"", r ? "," : "", m->text[m->left[r]],
                      m->text[m->right[r]]);
    }
    fm_str_puts(&merges, "]");
    fm_tokenizer *t = parse((tiny){.vocab = vocab.text, .merges = merges.text});
    fm_str_fini(&vocab);
    fm_str_fini(&merges);
    return t;
}

/* The definition, word by word: find the best pair, merge it, begin again. */
static int merge_plainly(const struct random_merges *m, const char *text, int *id)
{
    int n = 0;
    for (; text[n]; n++) id[n] = text[n];
    for (;;) {
        int best = m->n, at = -1;
        for (int i = 0; i + 1 < n; i++)
            for (int r = 0; r < best; r++)
                if (m->left[r] == id[i] && m->right[r] == id[i + 1]) {
                    best = r;
                    at   = i;
                }
        if (at < 0) return n;
        id[at] = 256 + best;
        memmove(id + at + 1, id + at + 2, (size_t)(--n - at - 1) * sizeof *id);
    }
}

static void merging_agrees_with_its_definition_at_every_length(void **state)
{
    (void)state;
    static struct random_merges m;
    char                        text[400];
    int                         want[400];
    for (uint64_t key = 1; key <= 3; key++) {
        draw_merges(&m, key);
        fm_tokenizer *t = random_tokenizer(&m);
        for (uint32_t n = 1; n < sizeof text; n += 1 + n / 12) {
            for (uint32_t i = 0; i < n; i++)
                text[i] = (char)('a' + fm_rng_u32(key + 9, n * 1000 + i) % 3);
            text[n]        = 0;
            const int n_id = merge_plainly(&m, text, want);
            fm_ids    ids  = encode(t, text, 0);
            assert_int_equal(ids.n, n_id);
            for (int i = 0; i < n_id; i++) assert_int_equal(ids.id[i], want[i]);
            fm_ids_fini(&ids);
        }
        fm_tokenizer_close(t);
    }
}

static void a_long_run_takes_no_quadratic_time(void **state)
{
    (void)state;
    fm_tokenizer *t =
        parse((tiny){.vocab = ",\"aa\":256,\"aaaa\":257", .merges = "[\"a a\",\"aa aa\"]"});
    const size_t n    = 1 << 20;
    char        *text = malloc(n + 1);
    memset(text, 'a', n);
    text[n]    = 0;
    fm_ids ids = encode(t, text, 0);
    assert_int_equal(ids.n, n / 4);
    for (size_t i = 0; i < ids.n; i++) assert_int_equal(ids.id[i], 257);
    fm_ids_fini(&ids);
    free(text);
    fm_tokenizer_close(t);
}

static void a_run_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    fm_tokenizer         *t   = parse((tiny){0});
    const size_t          n   = (16 << 20) + 1;
    char                 *a   = malloc(n);
    fm_tokenizer_scratch *s   = NULL;
    fm_ids                ids = {0};
    memset(a, 'a', n);
    assert_int_equal(fm_tokenizer_scratch_create(&s, t), FM_OK);
    assert_int_equal(fm_encode(t, s, a, n, 0, &ids), FM_E_FORMAT);
    assert_int_equal(ids.n, 0);
    fm_tokenizer_scratch_destroy(s);
    free(a);
    fm_ids_fini(&ids);
    fm_tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_come_as_pairs_or_as_strings),
        cmocka_unit_test(the_lowest_rank_merges_first_and_the_leftmost_of_equals),
        cmocka_unit_test(a_whole_token_wins_when_merges_are_ignored),
        cmocka_unit_test(merging_agrees_with_its_definition_at_every_length),
        cmocka_unit_test(a_long_run_takes_no_quadratic_time),
        cmocka_unit_test(a_run_beyond_the_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
