/* SPDX-License-Identifier: Apache-2.0 */
#include "generate.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/progress.h"

/* The running state of one batch. */
typedef struct {
    fm_answers       *batch;
    const fm_dataset *rows;
    const fm_ask     *ask;
    fm_progress       bar;
    double            began;
    int64_t           n_token; /* prompts that were computed, and outputs */
} progress;

static fm_status submit_row(fm_engine *e, const fm_data_row *row, const fm_ask *ask, uint64_t *id)
{
    fm_prompt p = {.token     = row->token,
                   .n_token   = row->n_prompt,
                   .sampling  = ask->sampling,
                   .stop      = (const char *const *)ask->stop,
                   .n_stop    = ask->n_stop,
                   .keep_stop = ask->keep_stop,
                   .n         = ask->n_sample,
                   .prompt_logprobs = ask->prompt_logprobs && ask->logprob_from < row->n_prompt,
                   .logprob_from    = ask->logprob_from};
    if (!ask->set_max_new) p.sampling.max_new_tokens = row->n_output;
    return fm_engine_submit(e, &p, id);
}

static fm_status submit_all(fm_engine *e, progress *p)
{
    fm_answers *b = p->batch;
    for (int i = 0; i < b->n_row; i++) {
        uint64_t        id = UINT64_MAX; /* of no request */
        const fm_status rc = submit_row(e, &p->rows->row[i], p->ask, &id);
        if (rc != FM_OK && !(rc == FM_E_ARG && p->ask->skip_unfit)) {
            char why[512];
            snprintf(why, sizeof why, "%s", fm_why());
            return fm_fail(rc, "request %d: %s", i, why);
        }
        for (int j = 0; j < b->n_sample; j++) b->answer[i * b->n_sample + j].id = id;
    }
    return FM_OK;
}

/* Ids are given in order of submission, so the guess nearly always hits. */
static fm_answer *answer_of(fm_answers *b, const fm_event *ev)
{
    const uint64_t guess = ev->id - b->answer[0].id;
    int            row   = guess < (uint64_t)b->n_row ? (int)guess : 0;
    if (b->answer[row * b->n_sample].id != ev->id)
        for (row = 0; row < b->n_row && b->answer[row * b->n_sample].id != ev->id;) row++;
    FM_BUG_UNLESS(row < b->n_row && ev->index >= 0 && ev->index < b->n_sample);
    return &b->answer[row * b->n_sample + ev->index];
}

static fm_status append(fm_answer *a, int32_t token, float logprob, int with_logprob)
{
    if (a->n == a->cap) {
        const int cap   = a->cap ? a->cap * 2 : 64;
        int32_t  *grown = realloc(a->token, (size_t)cap * sizeof *grown);
        if (grown) a->token = grown;
        float *logs = with_logprob ? realloc(a->logprob, (size_t)cap * sizeof *logs) : NULL;
        if (logs) a->logprob = logs;
        if (!grown || (with_logprob && !logs)) return fm_fail(FM_E_OOM, "answers");
        a->cap = cap;
    }
    a->token[a->n] = token;
    if (with_logprob) a->logprob[a->n] = logprob;
    a->n++;
    return FM_OK;
}

static fm_status append_prompt(fm_answer *a, const fm_event *ev)
{
    if (!a->prompt_logprob) a->prompt_logprob = malloc((size_t)ev->n_prompt * sizeof(float));
    if (!a->prompt_logprob) return fm_fail(FM_E_OOM, "log-probabilities of prompts");
    FM_BUG_UNLESS(a->n_prompt_logprob < ev->n_prompt);
    a->prompt_logprob[a->n_prompt_logprob++] = ev->logprob;
    return FM_OK;
}

static fm_status take_event(progress *p, const fm_event *ev)
{
    fm_answer *a = answer_of(p->batch, ev);
    if (ev->prompt_at >= 0) return append_prompt(a, ev);
    if (ev->token >= 0) {
        if (a->n == 0) {
            p->n_token += ev->n_prompt;
            p->batch->sum_ttft += fm_now() - p->began;
            p->batch->n_begun++;
        }
        if (a->n == 0 && ev->index == 0) p->batch->n_input += ev->n_prompt;
        FM_TRY(append(a, ev->token, ev->logprob, p->ask->sampling.logprobs));
        p->n_token++;
        p->batch->n_output++;
    }
    a->finish = ev->finish;
    p->batch->n_finished += ev->finish == FM_FINISH_STOP || ev->finish == FM_FINISH_LENGTH;
    p->batch->n_failed += ev->finish == FM_FINISH_ERROR;
    return FM_OK;
}

static const char *speed_note(const progress *p, char *buf, size_t size)
{
    snprintf(buf, size, "%d/%d requests, %.0f tok/s", p->batch->n_finished,
             p->batch->n_row * p->batch->n_sample,
             (double)p->n_token / (fm_now() - p->began + 1e-9));
    return buf;
}

static const char *ends(const fm_ask *ask) { return ask->ends ? ask->ends() : NULL; }

static fm_status run_until_idle(fm_engine *e, progress *p)
{
    char     note[96];
    fm_event ev;
    while (fm_engine_busy(e) && !(p->batch->ended_by = ends(p->ask))) {
        FM_TRY(fm_engine_step(e));
        while (fm_engine_poll(e, &ev)) FM_TRY(take_event(p, &ev));
        if (!p->ask->quiet)
            fm_progress_show(&p->bar, (double)p->n_token, speed_note(p, note, sizeof note));
    }
    while (fm_engine_poll(e, &ev)) FM_TRY(take_event(p, &ev));
    if (!p->ask->quiet) fm_progress_end(&p->bar, speed_note(p, note, sizeof note));
    return FM_OK;
}

fm_status fm_generate(fm_answers *out, fm_engine *e, const fm_dataset *rows, const fm_ask *ask)
{
    *out = (fm_answers){.n_row = rows->n, .n_sample = ask->n_sample};
    if (rows->n == 0) return FM_OK;
    const size_t n_answer = (size_t)rows->n * (size_t)ask->n_sample;
    if (!(out->answer = calloc(n_answer, sizeof *out->answer))) return fm_fail(FM_E_OOM, "answers");

    progress p = {.batch = out, .rows = rows, .ask = ask, .began = fm_now()};
    p.bar      = fm_progress_begin("generate", (double)(rows->sum_prompt + rows->sum_output));
    FM_TRY(submit_all(e, &p));
    FM_TRY(run_until_idle(e, &p));
    out->seconds = fm_now() - p.began;
    return FM_OK;
}

void fm_answers_fini(fm_answers *b)
{
    for (int i = 0; b->answer && i < b->n_row * b->n_sample; i++) {
        free(b->answer[i].token);
        free(b->answer[i].logprob);
        free(b->answer[i].prompt_logprob);
    }
    free(b->answer);
    *b = (fm_answers){0};
}
