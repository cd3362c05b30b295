/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/data/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "llm/data/dataset_internal.h"

enum { WARMUP_ROWS = 16, WARMUP_INPUT = 256, WARMUP_OUTPUT = 16 };
enum { MAX_LENGTH = 1 << 24, MAX_TOKENS = 1 << 28 }; /* of a prompt, of a dataset */

fm_data_options fm_data_default(void)
{
    return (fm_data_options){
        .name              = "synthetic",
        .n_prompt          = 1000,
        .seed              = 42,
        .random_input_len  = 1024,
        .random_output_len = 1024,
        .gsp_groups        = 64,
        .gsp_per_group     = 16,
        .gsp_system_len    = 2048,
        .gsp_question_len  = 128,
        .gsp_output_len    = 256,
    };
}

void fm_dataset_fini(fm_dataset *d)
{
    for (int i = 0; i < d->n; i++) free(d->row[i].token);
    free(d->row);
    *d = (fm_dataset){0};
}

static fm_status reserve_row(fm_dataset *d)
{
    if (d->n < d->cap) return FM_OK;
    const int   cap  = d->cap ? 2 * d->cap : 256;
    void *const more = realloc(d->row, (size_t)cap * sizeof *d->row);
    if (!more) return fm_fail(FM_E_OOM, "%d rows of a dataset", cap);
    d->row = more;
    d->cap = cap;
    return FM_OK;
}

static fm_status check_ids(const int32_t *token, int64_t n, int vocab)
{
    for (int64_t i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= vocab)
            return fm_fail(FM_E_ARG, "dataset: token %d is outside the model's vocabulary of %d",
                           (int)token[i], vocab);
    return FM_OK;
}

/* The prompt may take all but one token of the context, the answer the rest. */
static int cut_to_context(int64_t *n, int64_t *n_output, int context)
{
    if (context == 0 || *n + *n_output <= context) return 0;
    if (*n > context - 1) *n = context - 1;
    if (*n_output > context - *n) *n_output = context - *n;
    return 1;
}

fm_status fm__dataset_add(fm_dataset *d, const fm__dealer *k, const int32_t *token, int64_t n,
                          int64_t n_output)
{
    const int cut = cut_to_context(&n, &n_output, k->opt->context);
    FM_BUG_UNLESS(n > 0 && n_output > 0);
    FM_TRY(fm__dataset_fits(1, d->sum_prompt + n));
    FM_TRY(fm__dataset_fits(1, n_output));
    FM_TRY(check_ids(token, n, k->opt->vocab));
    FM_TRY(reserve_row(d));
    int32_t *copy = malloc((size_t)n * sizeof *copy);
    if (!copy) return fm_fail(FM_E_OOM, "prompt of %lld tokens", (long long)n);
    memcpy(copy, token, (size_t)n * sizeof *copy);

    d->row[d->n++] = (fm_data_row){copy, (int32_t)n, (int32_t)n_output};
    d->n_cut += cut;
    d->sum_prompt += n;
    d->sum_output += n_output;
    return FM_OK;
}

fm_status fm__dataset_fits(int64_t n, int64_t len)
{
    if (n <= MAX_TOKENS / len) return FM_OK;
    return fm_fail(FM_E_ARG, "dataset: %lld x %lld tokens are more than the limit of %d",
                   (long long)n, (long long)len, MAX_TOKENS);
}

static fm_status check_between(const char *option, int64_t value, int64_t lo, int64_t hi)
{
    if (value >= lo && value <= hi) return FM_OK;
    return fm_fail(FM_E_ARG, "%s is %lld, must be between %lld and %lld", option, (long long)value,
                   (long long)lo, (long long)hi);
}

static fm_status check_length(const char *option, int value)
{
    return check_between(option, value, 1, MAX_LENGTH);
}

static fm_status check_sharegpt(const fm_data_options *o)
{
    if (!o->path && !o->text)
        return fm_fail(FM_E_ARG, "dataset sharegpt needs a file: --dataset-path FILE");
    if (o->sharegpt_output_len)
        FM_TRY(check_between("--sharegpt-output-len", o->sharegpt_output_len, 4, MAX_LENGTH));
    return check_between("--sharegpt-context-len", o->sharegpt_context_len, 0, INT32_MAX);
}

static fm_status check_random(const fm_data_options *o)
{
    FM_TRY(check_length("--random-input-len", o->random_input_len));
    FM_TRY(check_length("--random-output-len", o->random_output_len));
    if (!(o->random_range_ratio >= 0 && o->random_range_ratio <= 1))
        return fm_fail(FM_E_ARG, "--random-range-ratio is %g, must be between 0 and 1",
                       o->random_range_ratio);
    return FM_OK;
}

static fm_status check_shared_prefix(const fm_data_options *o)
{
    FM_TRY(check_between("--gsp-num-groups", o->gsp_groups, 1, INT32_MAX));
    FM_TRY(check_between("--gsp-prompts-per-group", o->gsp_per_group, 1, INT32_MAX));
    FM_TRY(check_length("--gsp-system-prompt-len", o->gsp_system_len));
    FM_TRY(check_length("--gsp-question-len", o->gsp_question_len));
    return check_length("--gsp-output-len", o->gsp_output_len);
}

static fm_status deal_random(fm_dataset *d, fm__dealer *k)
{
    const fm_data_options *o = k->opt;
    return fm__deal_random(d, k, o->n_prompt, o->random_input_len, o->random_output_len,
                           o->random_range_ratio);
}

static fm_status deal_random_ids(fm_dataset *d, fm__dealer *k)
{
    const fm_data_options *o = k->opt;
    return fm__deal_random_ids(d, k, o->n_prompt, o->random_input_len, o->random_output_len,
                               o->random_range_ratio);
}

typedef struct {
    const char *name;
    int         is_text; /* the file's, which needs a tokenizer */
    fm_status (*check)(const fm_data_options *o); /* or NULL */
    fm_status (*deal)(fm_dataset *d, fm__dealer *k);
} dataset_kind;

static const dataset_kind kinds[] = {
    {"sharegpt", 1, check_sharegpt, fm__deal_sharegpt},
    {"random", 0, check_random, deal_random},
    {"random-ids", 0, check_random, deal_random_ids},
    {"generated-shared-prefix", 0, check_shared_prefix, fm__deal_shared_prefix},
    {"synthetic", 0, NULL, fm__deal_synthetic},
};

static const dataset_kind *find_kind(const char *name)
{
    for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

fm_status fm_dataset_check(const fm_data_options *o, int has_tokenizer)
{
    const dataset_kind *kind = find_kind(o->name);
    if (!kind)
        return fm_fail(FM_E_ARG,
                       "dataset %s is unknown (sharegpt, random, random-ids, "
                       "generated-shared-prefix, synthetic)",
                       o->name ? o->name : "(none)");
    FM_TRY(check_between("--num-prompts", o->n_prompt, 1, INT32_MAX));
    if (o->seed > UINT32_MAX)
        return fm_fail(FM_E_ARG, "--seed is %llu, must be below 2^32", (unsigned long long)o->seed);
    if (kind->check) FM_TRY(kind->check(o));
    if (kind->is_text && !has_tokenizer)
        return fm_fail(FM_E_ARG, "dataset %s needs a tokenizer, and the model has none; give a "
                       "directory that has one with --tokenizer-path", kind->name);
    return FM_OK;
}

static fm_status check(const fm_data_options *o)
{
    FM_TRY(fm_dataset_check(o, o->tokenizer != NULL));
    FM_TRY(check_between("vocabulary", o->vocab, 1, INT32_MAX));
    return o->context ? check_between("context length", o->context, 2, INT32_MAX) : FM_OK;
}

/* The file is read once, for the rows and for the warm-up. */
static fm_status open_dealer(fm__dealer *k)
{
    const fm_data_options *o = k->opt;
    fm_mt_seed_python(&k->python, o->seed);
    fm_mt_seed_numpy(&k->numpy, (uint32_t)o->seed);
    if (!o->tokenizer || (!o->path && !o->text)) return FM_OK;
    FM_TRY(fm_tokenizer_scratch_create(&k->scratch, o->tokenizer));
    if (o->text)
        return fm__talks_index(&k->talks, o->text, o->text_len, o->path ? o->path : "dataset");
    FM_TRY(fm_mapped_file_open(&k->file, o->path));
    return fm__talks_index(&k->talks, k->file.data, k->file.size, o->path);
}

static void close_dealer(fm__dealer *k)
{
    fm__talks_fini(&k->talks);
    fm_mapped_file_close(&k->file);
    fm_tokenizer_scratch_destroy(k->scratch);
}

fm_status fm_dataset_draw(fm_dataset *rows, fm_dataset *warmup, const fm_data_options *opt)
{
    fm_status  rc    = FM_OK;
    fm__dealer k     = {.opt = opt};
    fm_dataset drawn = {0}, warm = {0};
    const int  n     = opt->n_prompt < WARMUP_ROWS ? opt->n_prompt : WARMUP_ROWS;

    FM_GO(check(opt));
    FM_GO(open_dealer(&k));
    FM_GO(find_kind(opt->name)->deal(&drawn, &k));
    FM_GO(fm__deal_random(&warm, &k, n, WARMUP_INPUT, WARMUP_OUTPUT, 1.0));

    *rows   = drawn;
    *warmup = warm;
    drawn = warm = (fm_dataset){0};
out:
    fm_dataset_fini(&drawn);
    fm_dataset_fini(&warm);
    close_dealer(&k);
    return rc;
}
