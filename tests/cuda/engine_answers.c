/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_answers.h"

#include <stdlib.h>
#include <string.h>

#include "engine_options.h"
#include "llm/engine.h"

static fm_status open_engine(fm_engine **e, const fm_engine_asked *how)
{
    const fm_engine_option option[] = {{"model-path", how->dir},
                                       {"device", how->device},
                                       {"max-running-requests", how->max_running},
                                       {"chunked-prefill-size", how->chunk},
                                       {"max-total-tokens", how->max_tokens},
                                       {"context-length", "96"},
                                       {"threads", "1"},
                                       {"deterministic", "1"},
                                       {"skip-tokenizer-init", "1"},
                                       {"disable-cuda-graph", how->records ? "0" : "1"},
                                       {"disable-radix-cache", how->no_cache ? "1" : "0"}};
    return fm_engine_open_with(e, option, sizeof option / sizeof *option, NULL);
}

/* Prompts of 5 to 53 tokens that begin alike. */
static fm_status submit(fm_engine *e, int i)
{
    int32_t   token[64];
    const int n = 5 + 16 * i;
    for (int k = 0; k < n; k++) token[k] = 2 + (k < 24 ? 7 * k : 11 * k + i) % 200;
    fm_prompt p               = {.token = token, .n_token = n, .sampling = fm_sampling_default()};
    p.sampling.temperature    = i == 3 ? 0.7f : 0;
    p.sampling.has_seed       = 1;
    p.sampling.seed           = 5;
    p.sampling.max_new_tokens = FM_N_ANSWER;
    p.sampling.ignore_eos     = 1;
    return fm_engine_submit(e, &p, NULL);
}

static fm_status run(fm_engine *e, fm_answers_of *out)
{
    int      n[FM_N_ASKED] = {0};
    fm_event ev;
    for (int i = 0; i < FM_N_ASKED; i++) FM_TRY(submit(e, i));
    do {
        FM_TRY(fm_engine_step(e));
        while (fm_engine_poll(e, &ev)) {
            out->failed[(ev.id - 1) % FM_N_ASKED] |= ev.finish == FM_FINISH_ERROR;
            if (ev.token >= 0 && n[(ev.id - 1) % FM_N_ASKED] < FM_N_ANSWER)
                out->token[(ev.id - 1) % FM_N_ASKED][n[(ev.id - 1) % FM_N_ASKED]++] = ev.token;
        }
    } while (fm_engine_busy(e));
    return FM_OK;
}

int fm_ask_engine(const fm_engine_asked *how, fm_answers_of *out)
{
    fm_engine *e = NULL;
    memset(out, 0, sizeof *out);
    fm_status rc = open_engine(&e, how);
    if (rc == FM_OK) rc = run(e, out);
    if (rc != FM_OK) out->why = fm_why();
    fm_engine_close(e);
    return rc == FM_OK;
}
