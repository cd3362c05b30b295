/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from a file, against what CPython and NumPy draw.  Entry i of the file
 * has prompt T[7i % 10] and reply T[(3i+1) % 10], a single turn if i % 9 == 4, no
 * turn if i % 11 == 5.  With len(t) the tokens of a text, BOS included:
 *
 *     random.seed(s); np.random.seed(s)
 *     l = [(7*i % 10, (3*i+1) % 10) for i in range(40) if i % 9 != 4 and i % 11 != 5]
 *     k = l[:]; random.shuffle(k)
 *     rows = [(p, len(p), len(r)) for p, r in k if len(p) > 1 and len(r) > 1][:n]
 *     random.shuffle(l)                           # the warm-up reads the file again
 *     warm = [p for p, r in l if len(p)][:16] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data_support.h"

typedef struct {
    int text, n_prompt, n_output;
} want_row;

static fm_tokenizer *plain, *with_bos;
static fm_str        file;

static void draw(fm_dataset *rows, fm_dataset *warm, const fm_data_options *o)
{
    if (fm_dataset_draw(rows, warm, o) != FM_OK) fail_msg("%s", fm_why());
}

/* Token j of a text repeated for ever. */
static int32_t expected_id(int text, int bos, int j)
{
    const data_text *t = &data_texts[text];
    const int        k = j % (t->n + bos);
    return bos && k == 0 ? 0 : t->id[k - bos];
}

static void check_rows(const fm_dataset *d, const want_row *want, int n, int bos)
{
    int64_t sum_prompt = 0, sum_output = 0;
    assert_int_equal(d->n, n);
    for (int i = 0; i < n; i++) {
        if (d->row[i].n_prompt != want[i].n_prompt || d->row[i].n_output != want[i].n_output)
            fail_msg("row %d: %d in %d out, want %d and %d", i, (int)d->row[i].n_prompt,
                     (int)d->row[i].n_output, want[i].n_prompt, want[i].n_output);
        for (int j = 0; j < want[i].n_prompt; j++)
            assert_int_equal(d->row[i].token[j], expected_id(want[i].text, bos, j));
        sum_prompt += want[i].n_prompt;
        sum_output += want[i].n_output;
    }
    assert_int_equal(d->sum_prompt, sum_prompt);
    assert_int_equal(d->sum_output, sum_output);
}

static void check_warmup(const fm_dataset *d, const int *text, int n, int bos)
{
    assert_int_equal(d->n, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(d->row[i].n_prompt, 256 - bos); /* the server's BOS is counted */
        assert_int_equal(d->row[i].n_output, 16);
        for (int j = 0; j < 256 - bos; j++)
            assert_int_equal(d->row[i].token[j], expected_id(text[i], bos, j));
    }
}

static void rows_and_warmup(void **state)
{
    (void)state;
    static const want_row want[] = {{9, 2, 4}, {4, 10, 4}, {3, 8, 4},  {4, 10, 4},
                                    {8, 4, 8}, {6, 10, 5}, {6, 10, 5}, {8, 4, 8}};
    static const int warmup[] = {3, 4, 3, 6, 9, 0, 8, 3};
    fm_dataset       rows, warm;
    fm_data_options  o = data_options(with_bos, &file);
    o.n_prompt         = 8;
    draw(&rows, &warm, &o);
    check_rows(&rows, want, 8, 1);
    check_warmup(&warm, warmup, 8, 1);
    assert_int_equal(rows.n_cut, 0);
    fm_dataset_fini(&rows);
    fm_dataset_fini(&warm);
}

static void without_bos_and_another_seed(void **state)
{
    (void)state;
    static const want_row want[] = {{8, 3, 7}, {4, 9, 3}, {7, 3, 9}, {4, 9, 3},
                                    {6, 9, 4}, {6, 9, 4}, {5, 4, 9}, {6, 9, 4}};
    static const int warmup[] = {1, 9, 4, 2, 3, 3, 9, 4};
    fm_dataset       rows, warm;
    fm_data_options  o = data_options(plain, &file);
    o.n_prompt         = 8;
    o.seed             = 2025;
    draw(&rows, &warm, &o);
    check_rows(&rows, want, 8, 0);
    check_warmup(&warm, warmup, 8, 0);
    fm_dataset_fini(&rows);
    fm_dataset_fini(&warm);
}

static void a_short_file_gives_what_it_has(void **state)
{
    (void)state;
    fm_dataset      rows, warm;
    fm_data_options o = data_options(with_bos, &file);
    o.n_prompt        = 1000000000;
    draw(&rows, &warm, &o);
    assert_int_equal(rows.n, 25);
    assert_int_equal(rows.row[24].n_prompt, 8);
    assert_int_equal(warm.n, 16);
    fm_dataset_fini(&rows);
    fm_dataset_fini(&warm);
}

static void a_fixed_output_length(void **state)
{
    (void)state;
    static const want_row want[] = {{1, 2, 12}, {9, 2, 12}, {4, 10, 12}, {3, 8, 12}};
    fm_dataset            rows, warm;
    fm_data_options       o = data_options(with_bos, &file);
    o.n_prompt              = 4;
    o.sharegpt_output_len   = 12; /* replies too short by themselves count now */
    draw(&rows, &warm, &o);
    check_rows(&rows, want, 4, 1);
    fm_dataset_fini(&rows);
    fm_dataset_fini(&warm);
}

static void a_context_length_skips(void **state)
{
    (void)state;
    static const want_row want[] = {{9, 2, 4}, {9, 2, 4}, {9, 2, 4},
                                    {2, 4, 2}, {2, 4, 2}, {2, 4, 2}};
    fm_dataset            rows, warm;
    fm_data_options       o = data_options(with_bos, &file);
    o.n_prompt              = 8;
    o.sharegpt_context_len  = 9;
    draw(&rows, &warm, &o);
    check_rows(&rows, want, 6, 1);
    fm_dataset_fini(&rows);
    fm_dataset_fini(&warm);
}

/* The first three rows need 6, 14 and 12 tokens; a prompt leaves room for one. */
static void the_models_context_cuts(void **state)
{
    (void)state;
    static const struct {
        int      context, n_cut;
        want_row want[3];
    } cases[] = {
        {9, 2, {{9, 2, 4}, {4, 8, 1}, {3, 8, 1}}},   {10, 2, {{9, 2, 4}, {4, 9, 1}, {3, 8, 2}}},
        {11, 2, {{9, 2, 4}, {4, 10, 1}, {3, 8, 3}}}, {13, 1, {{9, 2, 4}, {4, 10, 3}, {3, 8, 4}}},
        {2, 3, {{9, 1, 1}, {4, 1, 1}, {3, 1, 1}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fm_dataset      rows, warm;
        fm_data_options o = data_options(with_bos, &file);
        o.n_prompt        = 3;
        o.context         = cases[i].context;
        draw(&rows, &warm, &o);
        check_rows(&rows, cases[i].want, 3, 1);
        assert_int_equal(rows.n_cut, cases[i].n_cut);
        assert_int_equal(warm.n_cut, 3);
        fm_dataset_fini(&rows);
        fm_dataset_fini(&warm);
    }
}

/* lengths randint(5, 11), minus one for the BOS that a server adds */
static void random_from_a_file(void **state)
{
    (void)state;
    static const want_row bos[]  = {{1, 7, 9}, {9, 8, 6}, {4, 6, 7}, {3, 8, 7}};
    static const want_row none[] = {{1, 8, 9}, {9, 9, 6}, {4, 7, 7}, {3, 9, 7}};
    for (int with = 0; with < 2; with++) {
        fm_dataset      rows, warm;
        fm_data_options o    = data_options(with ? with_bos : plain, &file);
        o.name               = "random";
        o.n_prompt           = 4;
        o.random_input_len   = 10;
        o.random_output_len  = 10;
        o.random_range_ratio = 0.5;
        draw(&rows, &warm, &o);
        check_rows(&rows, with ? bos : none, 4, with);
        fm_dataset_fini(&rows);
        fm_dataset_fini(&warm);
    }
}

/* A file with one conversation; the row must be the encoding of `want`. */
static void only_row_is(fm_data_options o, const char *prompt_json, const char *want, size_t len)
{
    fm_str                one = {0};
    fm_dataset            rows, warm;
    fm_ids                ids = {0};
    fm_tokenizer_scratch *s   = NULL;
    fm_str_printf(&one, "[{\"conversations\":[{\"value\":\"%s\"},{\"value\":\"yes, yes\"}]}]",
                  prompt_json);
    o.text     = one.text;
    o.text_len = one.len;
    draw(&rows, &warm, &o);
    assert_int_equal(fm_tokenizer_scratch_create(&s, o.tokenizer), FM_OK);
    assert_int_equal(fm_encode(o.tokenizer, s, want, len, FM_ENCODE_BOS, &ids), FM_OK);
    assert_int_equal(rows.n, 1);
    assert_int_equal(rows.row[0].n_prompt, ids.n);
    assert_memory_equal(rows.row[0].token, ids.id, ids.n * sizeof *ids.id);
    fm_tokenizer_scratch_destroy(s);
    fm_ids_fini(&ids);
    fm_str_fini(&one);
    fm_dataset_fini(&rows);
    fm_dataset_fini(&warm);
}

#define ONLY_ROW_IS(o, prompt, want) only_row_is(o, prompt, want, sizeof(want) - 1)

static void a_suffix_goes_before_the_assistant(void **state)
{
    (void)state;
    fm_data_options o = data_options(with_bos, &file);
    o.prompt_suffix   = " Be brief. ";
    ONLY_ROW_IS(o, "Why?", "Why? Be brief. Assistant:");
    ONLY_ROW_IS(o, "Human: why? Assistant:", "Human: why?  Be brief. Assistant:");
    ONLY_ROW_IS(o, "", " Be brief. Assistant:");
    o.prompt_suffix = "";
    ONLY_ROW_IS(o, "Why? Assistant:", "Why? Assistant:");
}

static void a_chat_template_frames_the_prompt(void **state)
{
    (void)state;
    fm_tokenizer   *t = data_tokenizer("{\"add_bos_token\": true, \"chat_template\": "
                                       "\"{{ '<｜User｜>' }}{{ '<｜Assistant｜>' }}\"}");
    fm_data_options o = data_options(t, &file);
    o.apply_chat      = 1;
    ONLY_ROW_IS(o, "Why so?", "<｜User｜>Why so?<｜Assistant｜>");
    ONLY_ROW_IS(o, "x\\u0000y\\u0001z", "<｜User｜>x\0y\1z<｜Assistant｜>");
    ONLY_ROW_IS(o, "<｜begin▁of▁sentence｜>a<｜begin▁of▁sentence｜>b", "<｜User｜>ab<｜Assistant｜>");
    o.prompt_suffix = "!";
    ONLY_ROW_IS(o, "Go", "<｜User｜>Go!Assistant:<｜Assistant｜>");
    fm_tokenizer_close(t);
}

/* Half a surrogate pair, which Python reads, is U+FFFD here. */
static void lone_surrogates(void **state)
{
    (void)state;
    const fm_data_options o = data_options(with_bos, &file);
    ONLY_ROW_IS(o, "a\\ud83db", "a\xef\xbf\xbd" "b");
    ONLY_ROW_IS(o, "\\udc00\\ud83d\\ude00 \\\\ud83d\\ud83d",
                "\xef\xbf\xbd\xf0\x9f\x98\x80 \\ud83d\xef\xbf\xbd");
}

static int open_all(void **state)
{
    (void)state;
    plain    = data_tokenizer(DATA_NO_BOS);
    with_bos = data_tokenizer(DATA_WITH_BOS);
    data_write_file(&file);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fm_tokenizer_close(plain);
    fm_tokenizer_close(with_bos);
    fm_str_fini(&file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_warmup),
        cmocka_unit_test(without_bos_and_another_seed),
        cmocka_unit_test(a_short_file_gives_what_it_has),
        cmocka_unit_test(a_fixed_output_length),
        cmocka_unit_test(a_context_length_skips),
        cmocka_unit_test(the_models_context_cuts),
        cmocka_unit_test(random_from_a_file),
        cmocka_unit_test(a_suffix_goes_before_the_assistant),
        cmocka_unit_test(a_chat_template_frames_the_prompt),
        cmocka_unit_test(lone_surrogates),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
