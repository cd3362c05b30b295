/* SPDX-License-Identifier: Apache-2.0 */
#include "shadow_engine.h"

#include <stdio.h>
#include <string.h>

#include "engine_options.h"
#include "device/cuda/device.h"
#include "llm/engine/engine_internal.h"

static fm_shadow_heard *heard; /* the report comes while an engine closes */

static void keep(const char *text)
{
    snprintf(heard->report, sizeof heard->report, "%s", text);
}

static fm_status open_engine(fm_engine **e, const fm_shadow_asked *how)
{
    const fm_engine_option option[] = {{"model-path", how->model},
                                       {"json-model-override-args", how->json ? how->json : "{}"},
                                       {"page-size", how->page_size},
                                       {"shadow", "1"},
                                       {"max-running-requests", "8"},
                                       {"chunked-prefill-size", "32"},
                                       {"max-total-tokens", "1024"},
                                       {"context-length", "128"},
                                       {"threads", "1"},
                                       {"speculative-algorithm", how->drafts ? how->drafts : ""},
                                       {"disable-speculative-adaptive", "1"},
                                       {"skip-tokenizer-init", "1"}};
    const fm_engine_hooks  hooks    = {.report = keep};
    return fm_engine_open_with(e, option, sizeof option / sizeof *option, &hooks);
}

/* --- a fault ---------------------------------------------------------------- */

static const fm_matrix *matrix_of(const fm_weights *w, fm_change change)
{
    const fm_layer_weights *last = &w->layer[w->n_layer - 1];
    switch (change) {
    case FM_CHANGE_NONE:
    case FM_CHANGE_BIAS:
    case FM_NUDGE_BIAS: break;
    case FM_CHANGE_Q_UP: return &last->attn.q_up;
    case FM_CHANGE_EXPERT: return &last->ffn.expert[0].down;
    case FM_CHANGE_ROUTER: return &last->ffn.router;
    case FM_CHANGE_HEAD: return &w->head;
    }
    return NULL;
}

/* Every other expert of the last layer. */
static fm_status change_bias(const fm_weights *w, float by)
{
    float       *there = w->layer[w->n_layer - 1].ffn.bias, bias[256];
    const size_t n     = (size_t)w->config->n_expert;
    FM_BUG_UNLESS(there && n <= sizeof bias / sizeof *bias);
    FM_TRY(fm_cuda_download(bias, there, n * sizeof *bias, NULL));
    FM_TRY(fm_cuda_stream_wait(NULL));
    for (size_t i = 0; i < n; i += 2) bias[i] += by;
    FM_TRY(fm_cuda_upload(there, bias, n * sizeof *bias, NULL));
    return fm_cuda_stream_wait(NULL);
}

/* One row of the matrix gets other values. */
static fm_status change_weight(const fm_weights *w, fm_change change)
{
    const fm_matrix *m = matrix_of(w, change);
    char             row[8192];
    if (change == FM_CHANGE_BIAS) return change_bias(w, 1);
    if (change == FM_NUDGE_BIAS) return change_bias(w, 0x1.8p-12f);
    if (!m) return FM_OK;
    const size_t bytes = (size_t)m->k * fm_dtype_bytes(m->dtype);
    FM_BUG_UNLESS(bytes <= sizeof row);
    FM_TRY(fm_cuda_download(row, m->panels, bytes, NULL));
    FM_TRY(fm_cuda_stream_wait(NULL));
    for (size_t i = 0; i < bytes; i++) row[i] ^= 0x30;
    FM_TRY(fm_cuda_upload(m->panels, row, bytes, NULL));
    return fm_cuda_stream_wait(NULL);
}

/* --- a run ------------------------------------------------------------------ */

/* Prompts of 5 to 69 tokens that begin alike. */
static fm_status submit(fm_engine *e, int i)
{
    int32_t   token[96];
    const int n = 5 + 16 * i;
    for (int k = 0; k < n; k++) token[k] = 2 + (k < 24 ? 7 * k : 11 * k + i) % 190;
    fm_prompt p               = {.token = token, .n_token = n, .sampling = fm_sampling_default()};
    p.sampling.temperature    = 0;
    p.sampling.max_new_tokens = 6;
    p.sampling.ignore_eos     = 1;
    return fm_engine_submit(e, &p, NULL);
}

static fm_status run(fm_engine *e)
{
    fm_event ev;
    for (int i = 0; i < 5; i++) FM_TRY(submit(e, i));
    do {
        FM_TRY(fm_engine_step(e));
        while (fm_engine_poll(e, &ev)) {}
    } while (fm_engine_busy(e));
    return FM_OK;
}

void fm_ask_shadow(const fm_shadow_asked *how, fm_shadow_heard *out)
{
    fm_engine *e = NULL;
    memset(out, 0, sizeof *out);
    heard        = out;
    fm_status rc = open_engine(&e, how);
    if (rc == FM_OK) rc = change_weight(&e->beside.weights, how->change);
    if (rc == FM_OK) rc = run(e);
    if (rc != FM_OK) snprintf(out->why, sizeof out->why, "%s", fm_why());
    fm_engine_close(e);
}
