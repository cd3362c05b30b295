/* SPDX-License-Identifier: Apache-2.0 */
/* The "generated-shared-prefix" dataset: a system prompt per group, a question
 * per row, between them an empty line where there is a tokenizer to spell it.
 * Ids are drawn as Python's random.choices does. */
#include <stdlib.h>
#include <string.h>

#include "llm/data/dataset_internal.h"

static void draw_ids(fm_mt *python, int32_t *id, int64_t n, int vocab)
{
    for (int64_t i = 0; i < n; i++) id[i] = (int32_t)(fm_mt_double(python) * (double)vocab);
}

/* BOS before the system prompt and an empty line after it. */
static fm_status spell_edges(fm_ids *before, fm_ids *between, const fm__dealer *k)
{
    const fm_tokenizer *t = k->opt->tokenizer;
    if (!t) return FM_OK;
    const int32_t bos = fm_tokenizer_bos(t);
    if (fm_tokenizer_adds_bos(t) && bos >= 0) fm_ids_add(before, bos);
    fm_tokenizer_scratch *s = NULL;
    FM_TRY(fm_tokenizer_scratch_create(&s, t));
    const fm_status rc = fm_encode(t, s, "\n\n", 2, 0, between);
    fm_tokenizer_scratch_destroy(s);
    return rc;
}

typedef struct {
    int     n_group, n_per_group;
    int64_t n_system, n_question; /* tokens */
    int32_t *system;              /* [n_group][n_system] */
    int32_t *question;            /* [n_group][n_per_group][n_question] */
    fm_ids   before, between;
} prompts;

static void append(int32_t **at, const int32_t *id, size_t n)
{
    if (n) memcpy(*at, id, n * sizeof *id);
    *at += n;
}

/* `order` numbers the rows group by group. */
static fm_status add_rows(fm_dataset *d, fm__dealer *k, const prompts *p, const int32_t *order)
{
    const size_t n_system = (size_t)p->n_system, n_question = (size_t)p->n_question;
    const size_t n   = p->before.n + n_system + p->between.n + n_question;
    int32_t     *row = malloc(n * sizeof *row);
    if (!row) return fm_fail(FM_E_OOM, "prompt of %zu tokens", n);

    fm_status rc = FM_OK;
    for (int i = 0; rc == FM_OK && i < p->n_group * p->n_per_group; i++) {
        int32_t     *at = row;
        const size_t r = (size_t)order[i], g = r / (size_t)p->n_per_group;
        append(&at, p->before.id, p->before.n);
        append(&at, p->system + g * n_system, n_system);
        append(&at, p->between.id, p->between.n);
        append(&at, p->question + r * n_question, n_question);
        rc = fm__dataset_add(d, k, row, (int64_t)n, k->opt->gsp_output_len);
    }
    free(row);
    return rc;
}

fm_status fm__deal_shared_prefix(fm_dataset *d, fm__dealer *k)
{
    const fm_data_options *o = k->opt;
    const int64_t n_row = (int64_t)o->gsp_groups * o->gsp_per_group;
    FM_TRY(fm__dataset_fits(o->gsp_groups, o->gsp_system_len));
    FM_TRY(fm__dataset_fits(n_row, (int64_t)o->gsp_system_len + o->gsp_question_len));

    fm_status rc = FM_OK;
    prompts   p  = {.n_group = o->gsp_groups, .n_per_group = o->gsp_per_group,
                    .n_system = o->gsp_system_len, .n_question = o->gsp_question_len};
    int32_t *order = malloc((size_t)n_row * sizeof *order);
    p.system       = malloc((size_t)p.n_group * (size_t)p.n_system * sizeof *p.system);
    p.question     = malloc((size_t)n_row * (size_t)p.n_question * sizeof *p.question);
    if (!order || !p.system || !p.question) {
        rc = fm_fail(FM_E_OOM, "dataset generated-shared-prefix: %lld rows", (long long)n_row);
        goto out;
    }
    FM_GO(spell_edges(&p.before, &p.between, k));
    draw_ids(&k->python, p.system, p.n_group * p.n_system, o->vocab);
    draw_ids(&k->python, p.question, n_row * p.n_question, o->vocab);
    for (int i = 0; i < n_row; i++) order[i] = i;
    fm_mt_python_shuffle(&k->python, order, (size_t)n_row, sizeof *order);
    FM_GO(add_rows(d, k, &p, order));
out:
    fm_ids_fini(&p.before);
    fm_ids_fini(&p.between);
    free(p.question);
    free(p.system);
    free(order);
    return rc;
}
