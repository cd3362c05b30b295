/* SPDX-License-Identifier: Apache-2.0 */
/* Teacher-forced logits: the forward pass on a text that is already known.  It
 * uses the first partition; the others have no rows meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "llm/engine/engine_internal.h"

typedef struct {
    fm_engine     *e;
    const int32_t *token;
    int            n, n_prompt;
    float         *logits;
    fm_kv_lease    lease;
    int32_t       *pos, *out; /* [max_rows] */
} scoring;

static fm_status run_batch(fm_engine *e, const fm_batch *b, const float **logits)
{
    fm_read_plan own = {.batch = *b};
    if (e->courier) {
        const fm_batch *batch[e->n_group];
        for (int g = 0; g < e->n_group; g++) batch[g] = g == 0 ? b : NULL;
        const fm_step_plan p = {.head = {FM_PLAN_STEP, 0, e->n_launched++, 0}, .batch = batch};
        FM_TRY(fm_courier_send(e->courier, &p, &own));
    }
    FM_TRY(fm__engine_forward(e, &own.batch));
    if (e->courier && e->run->ops->sample) FM_TRY(fm_courier_settle(e->courier));
    return fm_run_logits(e->run, &own.batch, logits);
}

/* Rows [first, first+n) of the text, all of one form, and the logits of those
 * from n_prompt-1 on. */
static fm_status score_rows(scoring *s, int first, int n, fm_form form)
{
    fm_engine *e    = s->e;
    fm_span    span = {.n_row = n, .pos0 = first, .form = form, .page = s->lease.page};
    fm_batch   b    = {.n_row = n, .n_span = 1, .token = (int32_t *)s->token + first, .pos = s->pos,
                       .span = &span, .out = s->out};
    for (int i = 0; i < n; i++) {
        s->pos[i] = first + i;
        if (first + i >= s->n_prompt - 1) s->out[b.n_out++] = i;
    }
    const float *logits = NULL;
    FM_TRY(run_batch(e, &b, &logits));
    if (b.n_out) {
        const size_t V = (size_t)e->config.vocab;
        memcpy(s->logits + (size_t)(first + s->out[0] - (s->n_prompt - 1)) * V, logits,
               (size_t)b.n_out * V * sizeof(float));
    }
    return FM_OK;
}

static fm_status score_all(scoring *s)
{
    const fm_run_limits *lim = &s->e->limits;
    const int            most = lim->max_rows < lim->max_out ? lim->max_rows : lim->max_out;
    FM_TRY(fm_kv_grow(fm__partition(s->e, 0)->kv, &s->lease, s->n));
    FM_TRY(fm__tiers_move(s->e, &s->e->micro[0], 0)); /* what was evicted is still in place */
    for (int at = s->lease.n_cached; at < s->n;) {
        const int end = at < s->n_prompt ? s->n_prompt : s->n;
        const int n   = end - at < most ? end - at : most;
        FM_TRY(score_rows(s, at, n, at < s->n_prompt ? FM_FORM_PROMPT : FM_FORM_GENERATED));
        at += n;
    }
    return FM_OK;
}

fm_status fm_engine_score(fm_engine *e, const int32_t *token, int n, int n_prompt, float *logits)
{
    if (n < 1 || n_prompt < 1 || n_prompt > n || n > e->limits.max_context)
        return fm_fail(FM_E_ARG, "cannot score %d tokens with a prompt of %d", n, n_prompt);
    for (int i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= e->config.vocab)
            return fm_fail(FM_E_ARG, "token %d is %d, outside the vocabulary", i, (int)token[i]);
    FM_TRY(fm__engine_drain(e)); /* logits come in the order of the passes */
    fm_kv    *kv = fm__partition(e, 0)->kv;
    scoring   s  = {.e = e, .token = token, .n = n, .n_prompt = n_prompt, .logits = logits};
    fm_status rc = FM_OK;
    s.pos        = malloc((size_t)e->limits.max_rows * sizeof *s.pos);
    s.out        = malloc((size_t)e->limits.max_rows * sizeof *s.out);
    if (!s.pos || !s.out) rc = fm_fail(FM_E_OOM, "scoring");
    if (rc == FM_OK && (rc = fm_kv_begin(kv, &s.lease, token, n_prompt)) == FM_OK) {
        rc = score_all(&s);
        if (rc == FM_OK) fm_kv_publish(kv, &s.lease, token, n_prompt);
        fm_kv_end(kv, &s.lease);
    }
    free(s.pos);
    free(s.out);
    return rc;
}

fm_run *fm_engine_run(fm_engine *e)
{
    return e->backend->is_host && e->run->ranks.replica->n_rank == 1 ? e->run : NULL;
}
