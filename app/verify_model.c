/* SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include <math.h>
#include <stdlib.h>

#include "base/finite.h"
#include "generate.h"

/* FP32 arithmetic from the same weights; what remains is the order of sums. */
static const double exact_bound = 1e-4;

/* A listed BF16 error above this is a near-tie in the router: another expert
 * was chosen, and errors say nothing about the arithmetic. */
static const double near_tie_error = 0.1;

static double relative_error(const float *got, const double *want, int n)
{
    double diff = 0, norm = 0;
    for (int i = 0; i < n; i++) {
        diff += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return sqrt(diff / norm);
}

static double largest_error(const float *got, const double *want, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(got[i] - want[i]));
    return most;
}

static int argmax(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* logits [n_greedy][V]: row j is what token j of the answer comes from. */
static void compare(fm_verify_case *v, const fm_golden_case *c, const float *logits)
{
    const int    V    = c->n_logit;
    const float *last = logits + (size_t)(c->n_greedy - 1) * (size_t)V;
    v->is_finite      = fm_all_finite(logits, c->n_greedy * V);
    v->err_first      = relative_error(logits, c->first, V);
    v->err_last       = relative_error(last, c->last, V);
    v->max_abs_err    = fmax(largest_error(logits, c->first, V), largest_error(last, c->last, V));
    for (int j = 0; j < c->n_greedy; j++) {
        if (argmax(logits + (size_t)j * (size_t)V, V) == c->greedy[j])
            v->n_argmax++;
        else
            v->n_close += c->margin[j] < 2 * v->max_abs_err;
    }
}

static fm_status score(fm_engine *e, const fm_golden_case *c, int exact, fm_verify_case *v)
{
    fm_run   *run = c->route && !exact ? fm_engine_run(e) : NULL;
    fm_guide  guide;
    const int n      = c->n_prompt + c->n_greedy - 1; /* the last token needs no successor */
    int32_t  *text   = malloc((size_t)n * sizeof *text);
    float    *logits = malloc((size_t)c->n_greedy * (size_t)c->n_logit * sizeof *logits);
    fm_status rc     = FM_OK;
    if (!text || !logits) {
        rc = fm_fail(FM_E_OOM, "logits of a golden case");
        goto out;
    }
    for (int i = 0; i < n; i++)
        text[i] = i < c->n_prompt ? c->prompt[i] : c->greedy[i - c->n_prompt];
    if (run) fm_guide_on(&guide, run, c, v);
    rc = fm_engine_score(e, text, n, c->n_prompt, logits);
    if (run) fm_guide_off(&guide, run);
    if (rc == FM_OK) compare(v, c, logits);
out:
    free(text);
    free(logits);
    return rc;
}

/* All cases in one batch, without teacher forcing: each step gets the engine's own tokens. */
static fm_status run_free(fm_engine *e, const fm_golden *g, fm_verify_case *v)
{
    fm_ask     ask  = {.sampling = fm_sampling_default(), .n_sample = 1, .quiet = 1};
    fm_answers got  = {0};
    fm_dataset rows = {.row = calloc((size_t)g->n, sizeof *rows.row), .n = g->n};
    if (!rows.row) return fm_fail(FM_E_OOM, "golden prompts");
    for (int i = 0; i < g->n; i++)
        rows.row[i] = (fm_data_row){g->item[i].prompt, g->item[i].n_prompt, g->item[i].n_greedy};
    ask.sampling.temperature = 0;
    ask.sampling.ignore_eos  = 1;

    const fm_status rc = fm_generate(&got, e, &rows, &ask);
    for (int i = 0; rc == FM_OK && i < g->n; i++) {
        const fm_answer *a = &got.answer[i];
        int              n = 0;
        while (n < a->n && n < g->item[i].n_greedy && a->token[n] == g->item[i].greedy[n]) n++;
        v[i].n_greedy = n;
    }
    fm_answers_fini(&got);
    free(rows.row);
    return rc;
}

static fm_verdict judge_exact(const fm_verify_case *v, const fm_golden_case *c)
{
    const int ok = v->is_finite && v->err_first <= v->bound && v->err_last <= v->bound &&
                   v->n_argmax >= v->need_argmax && v->n_greedy == c->n_greedy;
    return ok ? FM_VERDICT_OK : FM_VERDICT_FAIL;
}

/* With the golden routes, errors are those of arithmetic alone.  Without, beyond the bound at one
 * of the two steps while the other step and the argmaxes are as they should be may be a router's
 * near-tie in that step. */
static fm_verdict judge(const fm_verify_case *v, const fm_golden_case *c)
{
    const int first = v->err_first <= v->bound, last = v->err_last <= v->bound;
    if (!v->is_finite || v->n_argmax < v->need_argmax || v->n_misrouted) return FM_VERDICT_FAIL;
    if (first && last) return FM_VERDICT_OK;
    if (v->is_guided) return FM_VERDICT_FAIL;
    return first || last || c->bf16_rel_err > near_tie_error ? FM_VERDICT_NEAR_TIE
                                                             : FM_VERDICT_FAIL;
}

fm_status fm_verify_model(fm_engine *e, const fm_golden *g, int exact, fm_verify_case *out)
{
    for (int i = 0; i < g->n; i++) {
        const fm_golden_case *c = &g->item[i];
        if (!exact && c->bf16_rel_err < 0)
            return fm_fail(FM_E_FORMAT, "cases[%d].bf16_rel_err_first is missing: without it only "
                                        "--dtype float32 can be judged", i);
        out[i]             = (fm_verify_case){.bound = exact ? exact_bound : 2 * c->bf16_rel_err};
        out[i].need_argmax = exact ? c->n_greedy : c->bf16_match > 2 ? c->bf16_match - 2 : 0;
        FM_TRY(score(e, c, exact, &out[i]));
    }
    fm_engine_flush_cache(e); /* of what golden routes left in it */
    FM_TRY(run_free(e, g, out));
    for (int i = 0; i < g->n; i++)
        out[i].verdict = (exact ? judge_exact : judge)(&out[i], &g->item[i]);
    return FM_OK;
}
