/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "talk.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

void fm_talk_catch_interrupt(void)
{
    struct sigaction act = {.sa_handler = on_interrupt}; /* no SA_RESTART: reads return */
    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
}

fm_status fm_talk_init(fm_talk *t, fm_engine *e, const fm_talk_options *opt, char **stop,
                       int n_stop)
{
    *t = (fm_talk){.engine = e, .opt = opt, .stop = stop, .n_stop = n_stop};
    const fm_tokenizer *tokenizer = fm_engine_tokenizer(e);
    if (!tokenizer)
        return fm_fail(FM_E_ARG, "this model has no tokenizer, and fathom run works on text; give "
                                 "a directory that has tokenizer.json with --tokenizer-path");
    t->style = fm_chat_style_of(tokenizer);
    FM_TRY(fm_tokenizer_scratch_create(&t->scratch, tokenizer));
    fm_talk_reset(t, opt->system);
    return FM_OK;
}

static void forget_last(fm_talk *t)
{
    t->n_turn--;
    free(t->turn[t->n_turn].role);
    free(t->turn[t->n_turn].content);
}

void fm_talk_fini(fm_talk *t)
{
    while (t->n_turn) forget_last(t);
    free(t->turn);
    fm_tokenizer_scratch_destroy(t->scratch);
    *t = (fm_talk){0};
}

static void remember(fm_talk *t, const char *role, const char *content)
{
    fm_talk_turn *grown = realloc(t->turn, (size_t)(t->n_turn + 1) * sizeof *grown);
    FM_BUG_UNLESS(grown != NULL);
    t->turn          = grown;
    grown[t->n_turn] = (fm_talk_turn){strdup(role), strdup(content)};
    FM_BUG_UNLESS(grown[t->n_turn].role && grown[t->n_turn].content);
    t->n_turn++;
}

void fm_talk_reset(fm_talk *t, const char *system)
{
    while (t->n_turn) forget_last(t);
    if (system && *system) remember(t, "system", system);
}

/* Another one each time, also in the next run. */
static uint64_t draw_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = (uint64_t)time(NULL);
    return seed;
}

static fm_prompt ask(const fm_talk *t)
{
    const fm_talk_options *o      = t->opt;
    fm_prompt              p      = {.sampling     = fm_sampling_default(),
                                     .stop         = (const char *const *)t->stop,
                                     .n_stop       = t->n_stop,
                                     .keep_special = o->show_special};
    p.sampling.temperature        = (float)o->temperature;
    p.sampling.top_p              = (float)o->top_p;
    p.sampling.top_k              = (int)o->top_k;
    p.sampling.min_p              = (float)o->min_p;
    p.sampling.repetition_penalty = (float)o->repetition_penalty;
    p.sampling.frequency_penalty  = (float)o->frequency_penalty;
    p.sampling.presence_penalty   = (float)o->presence_penalty;
    p.sampling.min_new_tokens     = (int)o->min_new_tokens;
    p.sampling.ignore_eos         = o->ignore_eos;
    p.sampling.has_seed           = 1;
    p.sampling.seed               = o->seed >= 0 ? (uint64_t)o->seed : draw_seed();
    p.sampling.max_new_tokens =
        o->max_new_tokens > 0 ? (int)o->max_new_tokens : fm_engine_context(t->engine);
    return p;
}

/* Streams one answer to stdout and into *answer. */
static fm_status stream(fm_engine *e, const fm_prompt *p, fm_str *answer)
{
    uint64_t  id;
    int       stopped = 0;
    fm_event  ev;
    fm_finish why = FM_FINISH_NONE;
    interrupted   = 0;
    FM_TRY(fm_engine_submit(e, p, &id));
    do {
        if (interrupted && !stopped) {
            fm_engine_cancel(e, id);
            stopped = 1;
        } else {
            FM_TRY(fm_engine_step(e));
        }
        while (fm_engine_poll(e, &ev)) {
            if (ev.finish == FM_FINISH_ERROR) why = ev.finish;
            fwrite(ev.text, 1, ev.text_len, stdout);
            fm_str_add(answer, ev.text, ev.text_len);
        }
        fflush(stdout);
    } while (fm_engine_busy(e));
    while (fm_engine_poll(e, &ev)) continue; /* the end of a cancelled answer */
    putchar('\n');
    fflush(stdout);
    if (why == FM_FINISH_ERROR) return fm_fail(FM_E_FORMAT, "%s", fm_finish_why(why));
    return stopped ? fm_fail(FM_E_CANCELLED, "stopped") : FM_OK;
}

fm_status fm_talk_raw(fm_talk *t, const char *text, size_t len)
{
    fm_prompt p        = ask(t);
    fm_str    answer   = {0};
    p.text             = text;
    p.text_len         = len;
    const fm_status rc = stream(t->engine, &p, &answer);
    fm_str_fini(&answer);
    return rc;
}

static fm_status render(const fm_talk *t, fm_str *out, fm_reasoning_mode *answer)
{
    fm_chat_message *message = calloc((size_t)t->n_turn, sizeof *message);
    if (!message) return fm_fail(FM_E_OOM, "the conversation");
    for (int i = 0; i < t->n_turn; i++)
        message[i] = (fm_chat_message){.role = t->turn[i].role, .content = t->turn[i].content};
    const fm_chat   chat = {.message        = message,
                            .n_message      = t->n_turn,
                            .thinking       = t->opt->thinking,
                            .add_generation = 1};
    const fm_status rc =
        fm_chat_render_answer(&chat, t->style, fm_engine_tokenizer(t->engine), out, answer);
    free(message);
    return rc;
}

/* The whole conversation goes in each time; the prefix cache has all but the
 * last turn. */
fm_status fm_talk_say(fm_talk *t, const char *text)
{
    fm_status rc     = FM_OK;
    fm_str    prompt = {0}, answer = {0};
    fm_ids    ids = {0};
    fm_prompt p   = ask(t);
    fm_reasoning_mode begins;

    remember(t, "user", text);
    FM_GO(render(t, &prompt, &begins));
    FM_GO(fm_encode(fm_engine_tokenizer(t->engine), t->scratch, prompt.text, prompt.len, 0, &ids));
    p.token   = ids.id;
    p.n_token = (int32_t)ids.n;
    if (begins == FM_REASONING_OPEN)
        puts("<think>"); /* the prompt ends with it, the answer closes it */
    FM_GO(stream(t->engine, &p, &answer));
out:
    if (rc == FM_OK || (rc == FM_E_CANCELLED && answer.len))
        remember(t, "assistant", answer.text ? answer.text : "");
    else
        forget_last(t);
    fm_ids_fini(&ids);
    fm_str_fini(&answer);
    fm_str_fini(&prompt);
    return rc;
}
