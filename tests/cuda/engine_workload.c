/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_workload.h"

#include <stdio.h>
#include <string.h>

#include "engine_options.h"
#include "base/str.h"
#include "llm/engine.h"

enum {
    N_ASKED   = 11,
    N_ANSWERS = 3,  /* of one request, at most */
    LEAVES_AT = 3,  /* events after which a client leaves */
    STOP_ID   = 77,
    MORE      = 8, /* options */
};

typedef enum {
    GREEDY,
    STOPS_BY_ID,
    STOPS_BY_TEXT,
    PENALISED,
    WITH_LOGPROBS,
    SCORED,
    OF_A_FORM,
    LEAVES,
    SHORT,
    N_KIND,
} kind;

typedef struct {
    fm_engine  *e;
    fm_grammar *form;
    fm_str      said[N_ASKED][N_ANSWERS];
    int         n_event[N_ASKED];
} session;

static fm_status open_engine(fm_engine **e, const fm_workload *w)
{
    fm_engine_option option[12 + MORE] = {
        {"model-path", w->dir},
        {"tokenizer-path", w->tokenizer},
        {"device", "cuda"},
        {"max-running-requests", w->max_running},
        {"chunked-prefill-size", w->chunk},
        {"max-total-tokens", w->max_tokens},
        {"context-length", "96"},
        {"threads", "1"},
        {"deterministic", "1"},
        {"disable-cuda-graph", w->records ? "0" : "1"},
        {"disable-radix-cache", w->no_cache ? "1" : "0"},
        {"disable-overlap-schedule", w->no_overlap ? "1" : "0"}};
    size_t n = 12;
    for (const char *const *at = w->more; at && *at && n < 12 + MORE; at += 2)
        option[n++] = (fm_engine_option){at[0], at[1]};
    return fm_engine_open_with(e, option, n, NULL);
}

/* What is particular to a kind of request. */
static void specialise(fm_prompt *p, kind k, fm_logit_bias *bias, fm_grammar *form)
{
    fm_sampling *s = &p->sampling;
    switch (k) {
    case GREEDY: s->temperature = 0; break;
    case STOPS_BY_ID: /* likely, but when is left to chance */
        *bias                      = (fm_logit_bias){STOP_ID, 9};
        s->bias                    = bias;
        s->n_bias                  = 1;
        s->stop_id[s->n_stop_id++] = STOP_ID;
        s->min_new_tokens          = 2;
        s->ignore_eos              = 0;
        p->n                       = N_ANSWERS;
        break;
    case PENALISED: s->presence_penalty = s->frequency_penalty = 1.5f; break;
    case WITH_LOGPROBS: s->top_logprobs = 2; break;
    case SCORED: p->prompt_logprobs = 1; break;
    case OF_A_FORM: p->grammar = form; break;
    case SHORT: s->max_new_tokens = p->n_token % 2; break;
    case STOPS_BY_TEXT: /* its strings are the caller's */
    case LEAVES:
    case N_KIND: break;
    }
}

/* Prompts of 5 to 27 tokens that begin alike. */
static fm_status submit(session *s, int i)
{
    static const char *const stop[] = {"e", "a", "o"};
    int32_t                  token[64];
    fm_logit_bias            bias;
    const int                n = 5 + 7 * i % 23;
    for (int k = 0; k < n; k++) token[k] = 2 + (k < 17 ? 7 * k : 11 * k + i) % 200;
    fm_prompt p               = {.token = token, .n_token = n, .sampling = fm_sampling_default()};
    p.sampling.has_seed       = 1;
    p.sampling.seed           = 40 + (uint64_t)i;
    p.sampling.max_new_tokens = 4 + i % 5;
    p.sampling.ignore_eos     = 1;
    if (i % N_KIND == STOPS_BY_TEXT) {
        p.stop   = stop;
        p.n_stop = 3;
    }
    specialise(&p, (kind)(i % N_KIND), &bias, s->form);
    return fm_engine_submit(s->e, &p, NULL);
}

static void write_down(session *s, const fm_event *ev)
{
    fm_str *to = &s->said[(ev->id - 1) % N_ASKED][ev->index % N_ANSWERS];
    fm_str_printf(to, "[%d@%d %a", ev->token, ev->prompt_at, (double)ev->logprob);
    for (int i = 0; i < ev->n_top; i++)
        fm_str_printf(to, " %d:%a", ev->top[i].id, (double)ev->top[i].logprob);
    fm_str_printf(to, "] \"%.*s\" %d of %d", (int)ev->text_len, ev->text, ev->n_output,
                  ev->n_prompt);
    if (ev->finish != FM_FINISH_NONE)
        fm_str_printf(to, " %s %d %d", fm_finish_name(ev->finish), ev->matched_id,
                      ev->matched_stop);
    fm_str_printf(to, "\n");
}

static void read_events(session *s)
{
    for (fm_event ev; fm_engine_poll(s->e, &ev);) {
        const int i = (int)((ev.id - 1) % N_ASKED);
        write_down(s, &ev);
        if (++s->n_event[i] == LEAVES_AT && i % N_KIND == LEAVES) fm_engine_cancel(s->e, ev.id);
    }
}

/* A new request every other step. */
static fm_status run(session *s)
{
    const char form[] = "[a-z ]+";
    FM_TRY(fm_engine_grammar(&s->form, s->e, FM_GRAMMAR_REGEX, form, strlen(form)));
    for (int step = 0, i = 0; i < N_ASKED || fm_engine_busy(s->e); step++) {
        if (i < N_ASKED && (step % 2 == 0 || !fm_engine_busy(s->e))) FM_TRY(submit(s, i++));
        FM_TRY(fm_engine_step(s->e));
        read_events(s);
    }
    read_events(s);
    return FM_OK;
}

/* Takes what was said. */
static void put_together(session *s, char transcript[FM_WORKLOAD_BYTES])
{
    size_t at = 0;
    for (int i = 0; i < N_ASKED; i++)
        for (int k = 0; k < N_ANSWERS; k++) {
            const size_t room = FM_WORKLOAD_BYTES - at;
            const int    n    = snprintf(transcript + at, room, "answer %d of %d:\n%s", k, i,
                                         s->said[i][k].text ? s->said[i][k].text : "");
            at += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
            fm_str_fini(&s->said[i][k]);
        }
}

int fm_run_workload(const fm_workload *w, char transcript[FM_WORKLOAD_BYTES], const char **why)
{
    session   s     = {0};
    fm_status rc    = open_engine(&s.e, w);
    const int leads = rc == FM_OK && fm_engine_is_leader(s.e);
    if (rc == FM_OK) rc = leads ? run(&s) : fm_engine_follow(s.e);
    if (rc != FM_OK) *why = fm_why();
    transcript[0] = 0;
    if (leads) put_together(&s, transcript);
    fm_grammar_release(s.form);
    fm_engine_close(s.e);
    return rc == FM_OK;
}
