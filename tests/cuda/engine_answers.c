/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_answers.h"

#include <stdlib.h>
#include <string.h>

#include "engine_options.h"
#include "llm/engine.h"
#include "trace/trace_read.h"

static fm_status open_engine(fm_engine **e, const fm_engine_asked *how)
{
    const fm_engine_option option[] = {{"model-path", how->dir},
                                       {"device", how->device},
                                       {"max-running-requests", how->max_running},
                                       {"chunked-prefill-size", how->chunk},
                                       {"max-total-tokens", how->max_tokens},
                                       {"attention-split-tile-size", how->tile ? how->tile : "512"},
                                       {"context-length", "96"},
                                       {"threads", "1"},
                                       {"deterministic", "1"},
                                       {"skip-tokenizer-init", "1"},
                                       {"disable-cuda-graph", how->records ? "0" : "1"},
                                       {"disable-radix-cache", how->no_cache ? "1" : "0"}};
    return fm_engine_open_with(e, option, sizeof option / sizeof *option, NULL);
}

static fm_status open_tiered(fm_engine **e, const fm_engine_asked *how, const fm_tiers_asked *t)
{
    const fm_engine_option option[] = {{"model-path", how->dir},
                                       {"device", how->device},
                                       {"max-running-requests", how->max_running},
                                       {"chunked-prefill-size", how->chunk},
                                       {"max-total-tokens", how->max_tokens},
                                       {"context-length", "96"},
                                       {"threads", "1"},
                                       {"page-size", "4"},
                                       {"deterministic", "1"},
                                       {"skip-tokenizer-init", "1"},
                                       {"kv-cache-dtype", t->cache},
                                       {"disable-cuda-graph", how->records ? "0" : "1"},
                                       {"enable-hierarchical-cache", "1"},
                                       {"hicache-ratio", "2"},
                                       {"hicache-write-policy", t->policy},
                                       {"hicache-debug-demote", t->demotes ? "1" : "0"},
                                       {"hicache-debug-faults", t->faults ? t->faults : "0"},
                                       {"hicache-storage-backend", t->storage ? "file" : ""},
                                       {"hicache-storage-dir", t->storage ? t->storage : ""}};
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

int fm_ask_tiered(const fm_engine_asked *how, fm_tiers_asked *t, fm_answers_of *out)
{
    fm_engine *e  = NULL;
    fm_status  rc = open_tiered(&e, how, t);
    for (int i = 0; rc == FM_OK && i < t->n_round; i++) {
        memset(out, 0, sizeof *out);
        rc = run(e, out);
    }
    if (rc == FM_OK) {
        const fm_engine_info info = fm_engine_get_info(e);
        t->n_host = info.tiers.policy.host_tokens;
        t->n_disk = info.tiers.policy.disk_tokens;
        t->n_altered = info.tiers.policy.n_host_altered;
        if (info.n_free_page + info.n_idle_page != info.plan.n_page)
            rc = fm_fail(FM_E_FULL, "pages are lost");
    }
    if (rc != FM_OK) out->why = fm_why();
    fm_engine_close(e);
    return rc == FM_OK;
}

static uint64_t count(const fm_trace_file *f, int cls, const char *name, int flags)
{
    uint64_t n = 0;
    for (int k = 0; k < f->n_key; k++)
        if (f->key[k].cls == cls && (!name || !strcmp(f->key[k].name, name)) &&
            (f->key[k].flags & flags) == flags)
            n += f->sum[k].count;
    return n;
}

static void add_spans(const fm_trace_file *f, fm_traced *t)
{
    enum { TOLERANCE = 2000000 }; /* ns, of clocks that were compared */
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < f->n_span; i++)
        if (f->key[f->span[i].key].cls == FM_TRACE_STEP && f->span[i].begin_ns < first)
            first = f->span[i].begin_ns;
    for (size_t i = 0; i < f->n_span; i++) {
        const fm_trace_span *s = &f->span[i];
        if (!(f->key[s->key].flags & FM_TRACE_IS_DEVICE) || f->key[s->key].cls != FM_TRACE_WORK)
            continue;
        t->n_span++;
        t->n_outside += s->begin_ns + TOLERANCE < first ||
                        s->begin_ns + s->dur_ns > f->head.last_ns + TOLERANCE;
    }
}

static fm_status read_trace(const char *path, fm_traced *t)
{
    fm_trace_file f = {0};
    FM_TRY(fm_trace_load(&f, path));
    const int device = FM_TRACE_IS_DEVICE;
    *t               = (fm_traced){.n_step    = count(&f, FM_TRACE_STEP, NULL, 0),
                                   .n_embed   = count(&f, FM_TRACE_WORK, "embed", device),
                                   .n_experts = count(&f, FM_TRACE_WORK, "experts", device),
                                   .n_beside  = count(&f, FM_TRACE_WORK, "mlp", FM_TRACE_BESIDE),
                                   .n_sample  = count(&f, FM_TRACE_WORK, "sample", device),
                                   .wall_ns   = f.head.last_ns};
    for (int k = 0; k < f.n_key; k++)
        if (f.key[k].cls == FM_TRACE_WORK && !(f.key[k].flags & FM_TRACE_BESIDE))
            t->device_ns += f.sum[k].total_ns;
    add_spans(&f, t);
    fm_trace_file_fini(&f);
    return FM_OK;
}

int fm_ask_traced(const fm_engine_asked *how, const char *trace, fm_answers_of *out, fm_traced *t)
{
    fm_engine *e  = NULL;
    fm_status  rc = open_engine(&e, how);
    if (rc == FM_OK) rc = fm_engine_trace_begin(e, trace, 1);
    for (int i = 0; rc == FM_OK && i < 3; i++) {
        memset(out, 0, sizeof *out);
        rc = run(e, out);
    }
    if (rc == FM_OK) rc = fm_engine_trace_end(e);
    if (rc == FM_OK) rc = read_trace(trace, t);
    if (rc != FM_OK) out->why = fm_why();
    fm_engine_close(e);
    return rc == FM_OK;
}
