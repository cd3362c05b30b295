/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/rank/replica_wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* What is left of a message. */
typedef struct {
    const char *at;
    size_t      left;
} reader;

static size_t padded(size_t n)
{
    return (n + 7) / 8 * 8;
}

static void put(fm_str *out, const void *p, size_t n)
{
    static const char zeros[8];
    if (n) fm_str_add(out, p, n);
    fm_str_add(out, zeros, padded(n) - n);
}

static fm_status get(reader *r, const void **p, size_t n)
{
    if (n > r->left || padded(n) > r->left)
        return fm_fail(FM_E_FORMAT, "a garbled message from another replica");
    *p = r->at;
    r->at += padded(n);
    r->left -= padded(n);
    return FM_OK;
}

static fm_status get_copy(reader *r, void *to, size_t n)
{
    const void *p = NULL;
    FM_TRY(get(r, &p, n));
    memcpy(to, p, n);
    return FM_OK;
}

/* --- prompts --------------------------------------------------------------- */

void fm_prompt_write(fm_str *out, const fm_prompt *p)
{
    put(out, p, sizeof *p);
    put(out, p->token, (size_t)p->n_token * sizeof *p->token);
    put(out, p->sampling.bias, (size_t)p->sampling.n_bias * sizeof *p->sampling.bias);
    for (int i = 0; i < p->n_stop; i++) {
        const uint64_t n = strlen(p->stop[i]) + 1;
        put(out, &n, sizeof n);
        put(out, p->stop[i], n);
    }
}

static fm_status read_stop(reader *r, const char **stop)
{
    uint64_t    n    = 0;
    const void *text = NULL;
    FM_TRY(get_copy(r, &n, sizeof n));
    FM_TRY(get(r, &text, n));
    *stop = text;
    if (!n || (*stop)[n - 1]) return fm_fail(FM_E_FORMAT, "a garbled stop string from rank 0");
    return FM_OK;
}

static fm_status read_stops(reader *r, fm_prompt *p)
{
    if (p->n_stop < 0 || (size_t)p->n_stop > r->left / 8)
        return fm_fail(FM_E_FORMAT, "a garbled prompt from rank 0");
    if (!p->n_stop) return FM_OK;
    const char **stop = calloc((size_t)p->n_stop, sizeof *stop);
    if (!stop) return fm_fail(FM_E_OOM, "stop strings");
    p->stop      = stop;
    fm_status rc = FM_OK;
    for (int i = 0; rc == FM_OK && i < p->n_stop; i++) rc = read_stop(r, &stop[i]);
    if (rc == FM_OK) return FM_OK;
    free(stop);
    p->stop = NULL;
    return rc;
}

fm_status fm_prompt_read(fm_prompt *out, const char *data, size_t bytes)
{
    reader      r     = {data, bytes};
    const void *token = NULL, *bias = NULL;
    FM_TRY(get_copy(&r, out, sizeof *out));
    out->text = out->grammar_after = NULL;
    out->grammar = NULL;
    out->stop    = NULL;
    if (out->n_token < 0 || out->sampling.n_bias < 0)
        return fm_fail(FM_E_FORMAT, "a garbled prompt from rank 0");
    FM_TRY(get(&r, &token, (size_t)out->n_token * sizeof *out->token));
    FM_TRY(get(&r, &bias, (size_t)out->sampling.n_bias * sizeof *out->sampling.bias));
    out->token         = token;
    out->sampling.bias = bias;
    return read_stops(&r, out);
}

/* --- events ---------------------------------------------------------------- */

void fm_event_write(fm_str *out, const fm_event *ev)
{
    put(out, ev, sizeof *ev);
    put(out, ev->text, ev->text_len);
    put(out, ev->top, (size_t)ev->n_top * sizeof *ev->top);
}

fm_status fm_event_read(fm_event *out, const char *data, size_t bytes)
{
    reader      r    = {data, bytes};
    const void *text = NULL, *top = NULL;
    FM_TRY(get_copy(&r, out, sizeof *out));
    out->text = NULL;
    out->top  = NULL;
    if (out->n_top < 0 || out->n_top > FM_MAX_TOP_LOGPROBS)
        return fm_fail(FM_E_FORMAT, "a garbled event from another replica");
    FM_TRY(get(&r, &text, out->text_len));
    FM_TRY(get(&r, &top, (size_t)out->n_top * sizeof *out->top));
    out->text = text;
    out->top  = top;
    return FM_OK;
}
