/* SPDX-License-Identifier: Apache-2.0 */
/* Teacher-forced logits: the forward pass on a text that is already known. */
#include <stdlib.h>
#include <string.h>

#include "llm/engine_internal.h"
#include "llm/model/deepseek.h"

typedef struct {
    fm_engine     *e;
    const int32_t *token;
    int            n, n_prompt;
    float         *logits;
    fm_kv_lease    lease;
    int32_t       *pos, *out; /* [max_rows] */
} scoring;

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
    fm_run_start(e->run, &b);
    fm_deepseek_forward(e->run);
    FM_TRY(fm_run_finish(e->run));
    if (b.n_out) {
        const size_t V = (size_t)e->config.vocab;
        memcpy(s->logits + (size_t)(first + s->out[0] - (s->n_prompt - 1)) * V, e->run->act.logits.data,
               (size_t)b.n_out * V * sizeof(float));
    }
    return FM_OK;
}

static fm_status score_all(scoring *s)
{
    const fm_run_limits *lim = &s->e->limits;
    const int            most = lim->max_rows < lim->max_out ? lim->max_rows : lim->max_out;
    FM_TRY(fm_kv_grow(s->e->kv, &s->lease, s->n));
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
    scoring   s  = {.e = e, .token = token, .n = n, .n_prompt = n_prompt, .logits = logits};
    fm_status rc = FM_OK;
    s.pos        = malloc((size_t)e->limits.max_rows * sizeof *s.pos);
    s.out        = malloc((size_t)e->limits.max_rows * sizeof *s.out);
    if (!s.pos || !s.out) rc = fm_fail(FM_E_OOM, "scoring");
    if (rc == FM_OK && (rc = fm_kv_begin(e->kv, &s.lease, token, n_prompt)) == FM_OK) {
        rc = score_all(&s);
        if (rc == FM_OK) fm_kv_publish(e->kv, &s.lease, token, n_prompt);
        fm_kv_end(e->kv, &s.lease);
    }
    free(s.pos);
    free(s.out);
    return rc;
}
