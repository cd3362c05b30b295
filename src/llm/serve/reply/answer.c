/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/reply/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static void make_call_id(fm_str *out, uint64_t key, int index)
{
    fm_str_puts(out, "call_");
    for (uint64_t i = 0; i < 3; i++)
        fm_str_printf(out, "%08x", fm_rng_u32(key, (uint64_t)index * 4 + i));
}

static void take_piece(void *ctx, fm_tool_piece kind, int index, const char *id, const char *text,
                       size_t len)
{
    fm__answer *a = ctx;
    if (kind == FM_TOOL_TEXT) {
        fm_str_add(&a->said, text, len);
        return;
    }
    if (kind == FM_TOOL_NAME) {
        a->call = realloc(a->call, (size_t)(index + 1) * sizeof *a->call);
        FM_BUG_UNLESS(a->call != NULL && index == a->n_call);
        a->call[a->n_call++] = (fm__tool_call){0};
        fm_str_add(&a->call[index].name, text, len);
        if (*id) fm_str_puts(&a->call[index].id, id);
        else make_call_id(&a->call[index].id, a->id_key, index);
        return;
    }
    fm_str_add(&a->call[index].arguments, text, len);
}

static int is_declared(void *ctx, const char *name)
{
    const fm__ask *ask = ((fm__answer *)ctx)->ask;
    for (int i = 0; i < ask->n_tool; i++)
        if (!strcmp(ask->tool_name[i], name)) return 1;
    return 0;
}

static void add_logprob(fm__answer *a, fm__logprob lp, const fm_top_logprob *top)
{
    if (a->n_lp == a->cap_lp) {
        a->cap_lp = a->cap_lp ? 2 * a->cap_lp : 16;
        a->lp     = realloc(a->lp, a->cap_lp * sizeof *a->lp);
        FM_BUG_UNLESS(a->lp != NULL);
    }
    if (a->n_top + (size_t)lp.n_top > a->cap_top) {
        a->cap_top = 2 * (a->n_top + (size_t)lp.n_top);
        a->top     = realloc(a->top, a->cap_top * sizeof *a->top);
        FM_BUG_UNLESS(a->top != NULL);
    }
    if (lp.n_top) memcpy(a->top + a->n_top, top, (size_t)lp.n_top * sizeof *a->top);
    lp.top_at        = a->n_top;
    a->lp[a->n_lp++] = lp;
    a->n_top += (size_t)lp.n_top;
}

/* The first of the prompt's tokens that is reported follows nothing that was. */
static void begin_prompt_logprobs(fm__answer *a)
{
    const fm__prompt *p = &a->ask->prompt[a->prompt];
    if (p->logprob_from < 0 || (size_t)p->logprob_from >= p->token.n) return;
    add_logprob(a, (fm__logprob){.id = p->token.id[p->logprob_from], .of_prompt = 1, .is_first = 1},
                NULL);
}

void fm__answer_init(fm__answer *a, const fm__ask *ask, int slot, uint64_t id_key)
{
    *a          = (fm__answer){.ask          = ask,
                               .slot         = slot,
                               .prompt       = slot / ask->n,
                               .index        = slot % ask->n,
                               .matched_id   = -1,
                               .matched_stop = -1,
                               .id_key       = id_key + (uint64_t)slot * 1000003};
    a->sampling = &fm__ask_params(ask, a->prompt)->sampling;
    a->n_prompt = (int32_t)ask->prompt[a->prompt].token.n;
    fm_reasoning_init(&a->reasoning, ask->reasoning, ask->reasoning_also_ends);
    fm_tool_calls_init(&a->tools, ask->tool_style, take_piece, a);
    a->tools.known = is_declared;
    if (ask->forced.len) fm_tool_calls_push(&a->tools, ask->forced.text, ask->forced.len);
    if (ask->echo)
        fm_str_add(&a->said, ask->prompt[a->prompt].text.text, ask->prompt[a->prompt].text.len);
    begin_prompt_logprobs(a);
}

void fm__answer_fini(fm__answer *a)
{
    for (int i = 0; i < a->n_call; i++) {
        fm_str_fini(&a->call[i].name);
        fm_str_fini(&a->call[i].id);
        fm_str_fini(&a->call[i].arguments);
    }
    free(a->call);
    free(a->lp);
    free(a->top);
    fm_ids_fini(&a->token);
    fm_str_fini(&a->thought);
    fm_str_fini(&a->said);
    for (int i = 0; i < FM__N_SO_FAR; i++) fm_str_fini(&a->so_far[i]);
    fm_reasoning_fini(&a->reasoning);
    fm_tool_calls_fini(&a->tools);
}

static void say(fm__answer *a, const fm_str *said)
{
    if (!said->len) return;
    if (a->ask->tools) fm_tool_calls_push(&a->tools, said->text, said->len);
    else fm_str_add(&a->said, said->text, said->len);
}

static void add_text(fm__answer *a, const char *text, size_t len, int last)
{
    if (a->ask->reasoning == FM_REASONING_OFF && !a->ask->tools) { /* nothing to look for */
        fm_str_add(&a->said, text, len);
        return;
    }
    fm_str said = {0};
    fm_reasoning_push(&a->reasoning, text, len, &a->thought, &said);
    if (last) fm_reasoning_end(&a->reasoning, &a->thought, &said);
    say(a, &said);
    if (last && a->ask->tools) fm_tool_calls_end(&a->tools);
    fm_str_fini(&said);
}

void fm__answer_clear_logprobs(fm__answer *a)
{
    a->n_lp = a->n_top = 0;
}

void fm__answer_add(fm__answer *a, const fm_event *ev)
{
    const int thinking =
        a->reasoning.at != FM_REASONING_AFTER &&
        (a->reasoning.at == FM_REASONING_INSIDE || a->ask->reasoning == FM_REASONING_OPEN);
    const fm__prompt *prompt = &a->ask->prompt[a->prompt];
    a->finish                = ev->finish;
    a->matched_id   = ev->matched_id;
    a->matched_stop = ev->matched_stop;
    a->n_prompt     = ev->n_prompt;
    a->n_output     = ev->n_output;
    a->n_cached     = ev->n_cached;
    a->n_cached_host    = ev->n_cached_host;
    a->n_cached_storage = ev->n_cached_storage;
    a->n_verify     = ev->n_verify;
    a->n_draft      = ev->n_draft;
    a->n_accepted   = ev->n_accepted;
    if (ev->queue_seconds > 0) a->queue_seconds = ev->queue_seconds;
    if (ev->token >= 0) {
        a->n_thought += thinking;
        fm_ids_add(&a->token, ev->token);
    }
    if (a->sampling->logprobs && (ev->token >= 0 || ev->prompt_at >= 0))
        add_logprob(a,
                    (fm__logprob){.id        = ev->prompt_at >= 0 ? prompt->token.id[ev->prompt_at]
                                                                  : ev->token,
                                  .logprob   = ev->logprob,
                                  .n_top     = ev->n_top,
                                  .of_prompt = ev->prompt_at >= 0},
                    ev->top);
    add_text(a, ev->text, ev->text_len, ev->finish != FM_FINISH_NONE);
}

const char *fm__answer_finish_name(const fm__answer *a)
{
    if (a->finish == FM_FINISH_STOP && a->n_call) return "tool_calls";
    return fm_finish_name(a->finish);
}
