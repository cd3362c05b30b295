/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that need no tokenizer, against what CPython and NumPy draw. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "llm/data/dataset.h"

static fm_data_options options(const char *name, int n, int vocab)
{
    fm_data_options o = fm_data_default();
    o.name            = name;
    o.n_prompt        = n;
    o.vocab           = vocab;
    return o;
}

static void draw(fm_dataset *rows, fm_dataset *warm, const fm_data_options *o)
{
    if (fm_dataset_draw(rows, warm, o) != FM_OK) fail_msg("%s", fm_why());
}

static void finish(fm_dataset *rows, fm_dataset *warm)
{
    fm_dataset_fini(rows);
    fm_dataset_fini(warm);
}

static void counts_up_from(const fm_data_row *r, int first, int vocab)
{
    for (int j = 0; j < r->n_prompt; j++) assert_int_equal(r->token[j], (first + j) % vocab);
}

/* np.random.seed(42); randint(6, 21, 5), randint(3, 11, 5), randint(0, 1000, 5);
 * then the warm-up's offsets, randint(0, 1000, 5): its lengths draw nothing. */
static void random_ids(void **state)
{
    (void)state;
    static const int input[] = {12, 9, 18, 20, 16}, output[] = {10, 7, 7, 9, 4};
    static const int offset[] = {466, 214, 330, 458, 87}, warmup[] = {372, 99, 871, 663, 130};
    fm_dataset       rows, warm;
    fm_data_options  o   = options("random", 5, 1000);
    o.random_input_len   = 20;
    o.random_output_len  = 10;
    o.random_range_ratio = 0.3;
    draw(&rows, &warm, &o);
    assert_true(rows.n == 5 && warm.n == 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rows.row[i].n_prompt, input[i]);
        assert_int_equal(rows.row[i].n_output, output[i]);
        counts_up_from(&rows.row[i], offset[i] + i, 1000);
        assert_int_equal(warm.row[i].n_prompt, 256);
        assert_int_equal(warm.row[i].n_output, 16);
        counts_up_from(&warm.row[i], warmup[i] + i, 1000);
    }
    assert_int_equal(rows.sum_prompt, 75);
    assert_int_equal(rows.sum_output, 37);
    finish(&rows, &warm);
}

static void a_ratio_of_one_fixes_the_lengths(void **state)
{
    (void)state;
    fm_dataset      rows, warm;
    fm_data_options o    = options("random", 20, 7);
    o.random_input_len   = 33;
    o.random_output_len  = 5;
    o.random_range_ratio = 1;
    draw(&rows, &warm, &o);
    assert_int_equal(rows.sum_prompt, 20 * 33);
    assert_int_equal(rows.sum_output, 20 * 5);
    assert_int_equal(warm.n, 16);
    finish(&rows, &warm);
}

/* random.seed(42); groups of random.choices(range(100), k=4), then questions of
 * random.choices(range(100), k=2) group by group, then random.shuffle */
static void shared_prefixes(void **state)
{
    (void)state;
    static const int32_t want[6][6] = {
        {73, 67, 89, 8, 22, 58}, {63, 2, 27, 22, 42, 2}, {73, 67, 89, 8, 80, 0},
        {63, 2, 27, 22, 2, 19},  {73, 67, 89, 8, 64, 54}, {63, 2, 27, 22, 21, 50},
    };
    fm_dataset      rows, warm;
    fm_data_options o  = options("generated-shared-prefix", 1000, 100);
    o.gsp_groups       = 2;
    o.gsp_per_group    = 3;
    o.gsp_system_len   = 4;
    o.gsp_question_len = 2;
    o.gsp_output_len   = 9;
    draw(&rows, &warm, &o);
    assert_int_equal(rows.n, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(rows.row[i].n_prompt, 6);
        assert_int_equal(rows.row[i].n_output, 9);
        assert_memory_equal(rows.row[i].token, want[i], sizeof want[i]);
    }
    finish(&rows, &warm);
}

/* Python's random() through the quantile tables, np.random.randint for the ids. */
static void synthetic_rows(void **state)
{
    (void)state;
    static const int want[4][4] = {/* in, out, first id, last id */
        {298, 10, 121958, 46717}, {95, 42, 119937, 126071},
        {415, 183, 59040, 72936}, {866, 21, 24466, 21566},
    };
    fm_dataset            rows, warm;
    const fm_data_options o = options("synthetic", 4, 129280);
    draw(&rows, &warm, &o);
    for (int i = 0; i < 4; i++) {
        const fm_data_row r = rows.row[i];
        assert_int_equal(r.n_prompt, want[i][0]);
        assert_int_equal(r.n_output, want[i][1]);
        assert_int_equal(r.token[0], want[i][2]);
        assert_int_equal(r.token[r.n_prompt - 1], want[i][3]);
    }
    finish(&rows, &warm);
}

/* The means are ShareGPT's: within four standard errors (304 and 233 are the
 * standard deviations of the two distributions). */
static void synthetic_means(void **state)
{
    (void)state;
    const int             n = 20000;
    int                   longest = 0, shortest = 1024;
    fm_dataset            rows, warm;
    const fm_data_options o = options("synthetic", n, 4);
    draw(&rows, &warm, &o);
    assert_true(fabs((double)rows.sum_prompt / n - 313) < 4 * 304 / sqrt(n));
    assert_true(fabs((double)rows.sum_output / n - 194) < 4 * 233 / sqrt(n));
    for (int i = 0; i < n; i++) {
        if (rows.row[i].n_prompt > longest) longest = rows.row[i].n_prompt;
        if (rows.row[i].n_output < shortest) shortest = rows.row[i].n_output;
    }
    assert_int_equal(longest, 1024);
    assert_int_equal(shortest, 4);
    assert_int_equal(rows.n_cut, 0);
    finish(&rows, &warm);
}

static int same(const fm_dataset *a, const fm_dataset *b)
{
    if (a->n != b->n) return 0;
    for (int i = 0; i < a->n; i++) {
        const fm_data_row x = a->row[i], y = b->row[i];
        if (x.n_prompt != y.n_prompt || x.n_output != y.n_output) return 0;
        if (memcmp(x.token, y.token, (size_t)x.n_prompt * sizeof *x.token)) return 0;
    }
    return 1;
}

static void a_seed_is_a_dataset(void **state)
{
    (void)state;
    static const char *const names[] = {"random", "generated-shared-prefix", "synthetic"};
    for (int i = 0; i < 3; i++) {
        fm_dataset      rows[3], warm[3];
        fm_data_options o = options(names[i], 20, 1000);
        o.gsp_groups      = 4;
        for (int k = 0; k < 3; k++) {
            o.seed = k == 2 ? 43 : 42;
            draw(&rows[k], &warm[k], &o);
        }
        assert_true(same(&rows[0], &rows[1]) && same(&warm[0], &warm[1]));
        assert_false(same(&rows[0], &rows[2]));
        for (int k = 0; k < 3; k++) finish(&rows[k], &warm[k]);
    }
}

static void rows_fit_the_context(void **state)
{
    (void)state;
    fm_dataset      rows, warm, whole, whole_warm;
    fm_data_options o = options("synthetic", 500, 1000);
    draw(&whole, &whole_warm, &o);
    o.context = 200;
    draw(&rows, &warm, &o);
    int n_cut = 0;
    for (int i = 0; i < 500; i++) {
        const fm_data_row a = whole.row[i], b = rows.row[i];
        const int         fits = a.n_prompt + a.n_output <= 200;
        n_cut += !fits;
        assert_in_range(b.n_prompt + b.n_output, 1, 200);
        assert_true(b.n_prompt > 0 && b.n_output > 0);
        if (fits) assert_true(a.n_prompt == b.n_prompt && a.n_output == b.n_output);
        assert_memory_equal(a.token, b.token, (size_t)b.n_prompt * sizeof *b.token);
    }
    assert_true(n_cut > 100);
    assert_int_equal(rows.n_cut, n_cut);
    assert_int_equal(warm.n_cut, warm.n);
    finish(&rows, &warm);
    finish(&whole, &whole_warm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ids),
        cmocka_unit_test(a_ratio_of_one_fixes_the_lengths),
        cmocka_unit_test(shared_prefixes),
        cmocka_unit_test(synthetic_rows),
        cmocka_unit_test(synthetic_means),
        cmocka_unit_test(a_seed_is_a_dataset),
        cmocka_unit_test(rows_fit_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
