/* SPDX-License-Identifier: Apache-2.0 */
#include "fathom/sampling.h"

#include <math.h>

#include "llm/sample/sample.h"

fm_sampling fm_sampling_default(void)
{
    return (fm_sampling){
        .temperature        = 1,
        .top_p              = 1,
        .top_k              = -1,
        .repetition_penalty = 1,
        .max_new_tokens     = 128,
    };
}

const char *fm_finish_name(fm_finish f)
{
    switch (f) {
    case FM_FINISH_NONE: return "none";
    case FM_FINISH_STOP: return "stop";
    case FM_FINISH_LENGTH: return "length";
    case FM_FINISH_ABORT: return "abort";
    case FM_FINISH_ERROR: return "error";
    }
    return "unknown";
}

const char *fm_finish_why(fm_finish f)
{
    if (f != FM_FINISH_ERROR) return "";
    return "the model's logits are not finite (NaN or infinity), so no token can be chosen: a "
           "weight "
           "of the checkpoint is damaged, or the arithmetic overflowed";
}

/* Written so that NaN is outside every range. */
static fm_status check_range(const char *field, float x, float lo, float hi)
{
    if (x >= lo && x <= hi) return FM_OK;
    return fm_fail(FM_E_ARG, "%s is %g, must be between %g and %g", field, x, lo, hi);
}

static fm_status check_above_zero(const char *field, float x, float hi)
{
    if (x > 0 && x <= hi) return FM_OK;
    return fm_fail(FM_E_ARG, "%s is %g, must be above 0 and at most %g", field, x, hi);
}

static fm_status check_shape(const fm_sampling *p)
{
    if (!(p->temperature >= 0 && p->temperature < INFINITY))
        return fm_fail(FM_E_ARG, "temperature is %g, must be finite and not negative",
                       p->temperature);
    if (p->top_k != -1 && p->top_k < 1)
        return fm_fail(FM_E_ARG, "top_k is %d, must be -1 (all) or at least 1", p->top_k);
    FM_TRY(check_above_zero("top_p", p->top_p, 1));
    FM_TRY(check_range("min_p", p->min_p, 0, 1));
    FM_TRY(check_above_zero("repetition_penalty", p->repetition_penalty, 2));
    FM_TRY(check_range("frequency_penalty", p->frequency_penalty, -2, 2));
    return check_range("presence_penalty", p->presence_penalty, -2, 2);
}

static fm_status check_lengths(const fm_sampling *p)
{
    if (p->max_new_tokens < 0)
        return fm_fail(FM_E_ARG, "max_new_tokens is %d, must not be negative", p->max_new_tokens);
    if (p->min_new_tokens < 0 || p->min_new_tokens > p->max_new_tokens)
        return fm_fail(FM_E_ARG, "min_new_tokens is %d, must be between 0 and max_new_tokens (%d)",
                       p->min_new_tokens, p->max_new_tokens);
    if (p->top_logprobs < 0 || p->top_logprobs > FM_MAX_TOP_LOGPROBS)
        return fm_fail(FM_E_ARG, "top_logprobs is %d, must be between 0 and %d", p->top_logprobs,
                       FM_MAX_TOP_LOGPROBS);
    return FM_OK;
}

static fm_status check_stop_ids(const fm_sampling *p, int vocab)
{
    if (p->n_stop_id < 0 || p->n_stop_id > FM_MAX_STOP_IDS)
        return fm_fail(FM_E_ARG, "stop_token_ids has %d entries, at most %d are allowed",
                       p->n_stop_id, FM_MAX_STOP_IDS);
    for (int i = 0; i < p->n_stop_id; i++)
        if (p->stop_id[i] < 0 || p->stop_id[i] >= vocab)
            return fm_fail(FM_E_ARG, "stop_token_ids[%d] is %d, outside the vocabulary of %d", i,
                           (int)p->stop_id[i], vocab);
    return FM_OK;
}

static fm_status check_bias(const fm_sampling *p, int vocab)
{
    if (p->n_bias < 0 || p->n_bias > FM_MAX_LOGIT_BIAS)
        return fm_fail(FM_E_ARG, "logit_bias has %d entries, at most %d are allowed", p->n_bias,
                       FM_MAX_LOGIT_BIAS);
    if (p->n_bias > 0 && !p->bias)
        return fm_fail(FM_E_ARG, "logit_bias has %d entries but no list", p->n_bias);
    for (int i = 0; i < p->n_bias; i++) {
        const fm_logit_bias b = p->bias[i];
        if (b.id < 0 || b.id >= vocab)
            return fm_fail(FM_E_ARG, "logit_bias[%d] is for token %d, outside the vocabulary of %d",
                           i, (int)b.id, vocab);
        if (!isfinite(b.bias))
            return fm_fail(FM_E_ARG, "logit_bias[%d] for token %d is not a finite number", i,
                           (int)b.id);
    }
    return FM_OK;
}

fm_status fm_sampling_check(const fm_sampling *p, int vocab)
{
    FM_TRY(check_shape(p));
    FM_TRY(check_lengths(p));
    FM_TRY(check_stop_ids(p, vocab));
    return check_bias(p, vocab);
}
