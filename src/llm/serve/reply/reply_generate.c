/* SPDX-License-Identifier: Apache-2.0 */
/* /generate: SGLang's own form.  Streamed events carry all that was said so
 * far, or with --incremental-streaming-output what is new. */
#include "base/clock.h"
#include "llm/serve/loop/call.h"
#include "llm/serve/reply/write.h"

/* [log-probability or null, id, text or null] */
static void put_logprob(fm_str *out, const fm__call *c, int32_t id, double logprob, int known)
{
    size_t      n = 0;
    const char *text =
        c->ask->text_in_logprobs && c->tokenizer ? fm_token_bytes(c->tokenizer, id, &n) : NULL;
    fm_str_puts(out, "[");
    if (known) fm__put_number(out, logprob);
    else fm_str_puts(out, "null");
    fm_str_printf(out, ",%d,", (int)id);
    if (text) fm__put_text(out, text, n);
    else fm_str_puts(out, "null");
    fm_str_puts(out, "]");
}

/* What every event repeats is written once and copied from then on. */
enum { TEXT, IDS, LOGPROBS, TOPS, INPUT, INPUT_TOPS };

static void put_comma(fm_str *list)
{
    if (list->len) fm_str_add(list, ",", 1);
}

static void put_tops(fm_str *out, const fm__call *c, const fm__answer *a, const fm__logprob *lp)
{
    put_comma(out);
    if (lp->is_first) {
        fm_str_puts(out, "null");
        return;
    }
    fm_str_puts(out, "[");
    for (int k = 0; k < lp->n_top; k++) {
        const fm_top_logprob *t = &a->top[lp->top_at + (size_t)k];
        if (k) fm_str_puts(out, ",");
        put_logprob(out, c, t->id, t->logprob, 1);
    }
    fm_str_puts(out, "]");
}

static void take_logprobs(const fm__call *c, fm__answer *a)
{
    for (size_t i = 0; i < a->n_lp; i++) {
        const fm__logprob *lp   = &a->lp[i];
        fm_str            *list = &a->so_far[lp->of_prompt ? INPUT : LOGPROBS];
        put_comma(list);
        put_logprob(list, c, lp->id, lp->logprob, !lp->is_first);
        put_tops(&a->so_far[lp->of_prompt ? INPUT_TOPS : TOPS], c, a, lp);
    }
    fm__answer_clear_logprobs(a);
}

static void take_new(const fm__call *c, fm__answer *a)
{
    if (a->said.len) fm__put_escaped(&a->so_far[TEXT], a->said.text, a->said.len);
    fm_str_clear(&a->said);
    for (size_t i = 0; i < a->token.n; i++) {
        put_comma(&a->so_far[IDS]);
        fm_str_printf(&a->so_far[IDS], "%d", (int)a->token.id[i]);
    }
    a->token.n = 0;
    take_logprobs(c, a);
}

static void put_so_far(fm_str *out, const char *before, const fm_str *list, const char *after)
{
    fm_str_puts(out, before);
    fm_str_add(out, list->text, list->len);
    fm_str_puts(out, after);
}

static void put_logprobs(fm_str *out, const fm__answer *a)
{
    if (!a->sampling->logprobs) return;
    put_so_far(out, ",\"input_token_logprobs\":[", &a->so_far[INPUT], "]");
    put_so_far(out, ",\"output_token_logprobs\":[", &a->so_far[LOGPROBS], "]");
    if (!a->sampling->top_logprobs) return;
    put_so_far(out, ",\"input_top_logprobs\":[", &a->so_far[INPUT_TOPS], "]");
    put_so_far(out, ",\"output_top_logprobs\":[", &a->so_far[TOPS], "]");
}

static void put_finish(fm_str *out, const fm__answer *a)
{
    if (a->finish == FM_FINISH_NONE) {
        fm_str_puts(out, "null");
        return;
    }
    fm_str_printf(out, "{\"type\":\"%s\"", fm_finish_name(a->finish));
    if (a->finish == FM_FINISH_LENGTH) fm_str_printf(out, ",\"length\":%d", (int)a->n_output);
    if (a->finish == FM_FINISH_ABORT)
        fm_str_puts(out, ",\"message\":\"aborted\",\"status_code\":null");
    if (a->finish == FM_FINISH_STOP) {
        fm_str_puts(out, ",\"matched\":");
        fm__put_matched(out, a);
    }
    fm_str_puts(out, "}");
}

static void put_name(fm_str *out, const fm__call *c, const fm__answer *a)
{
    const char *rid = c->ask->prompt[a->prompt].rid;
    if (rid || c->n_answer == 1) {
        fm__put_word(out, rid ? rid : c->name);
        return;
    }
    fm_str name = {0};
    fm_str_printf(&name, "%s-%d", c->name, a->slot);
    fm__put_word(out, name.text);
    fm_str_fini(&name);
}

/* Seconds; the throughput is of the tokens after the first. */
static void put_times(fm_str *out, const fm__call *c, const fm__answer *a)
{
    const double decoding = a->last_token - a->first_token;
    fm_str_printf(out, ",\"e2e_latency\":%.6f,\"queue_time\":%.6f", fm_now() - c->began,
                  a->queue_seconds);
    if (a->n_output > 1 && decoding > 0)
        fm_str_printf(out, ",\"decode_throughput\":%.3f", (a->n_output - 1) / decoding);
}

/* Under SGLang's names: tokens per step that verified drafts, how many such steps, and which share
 * of the drafts was right. */
static void put_drafts(fm_str *out, const fm__answer *a)
{
    if (!a->n_verify) return;
    fm_str_printf(out,
                  ",\"spec_accept_length\":%.4f,\"spec_verify_ct\":%d,\"spec_accept_rate\":%.4f,"
                  "\"spec_num_correct_drafts\":%d,\"spec_num_proposed_drafts\":%d",
                  (double)(a->n_output - 1) / a->n_verify, (int)a->n_verify,
                  a->n_draft ? (double)a->n_accepted / a->n_draft : 0.0, (int)a->n_accepted,
                  (int)a->n_draft);
}

static void put_answer(fm_str *out, const fm__call *c, fm__answer *a, int with_index)
{
    take_new(c, a);
    fm_str_puts(out, "{");
    if (with_index) fm_str_printf(out, "\"index\":%d,", a->slot);
    put_so_far(out, "\"text\":\"", &a->so_far[TEXT], "\"");
    put_so_far(out, ",\"output_ids\":[", &a->so_far[IDS], "],\"meta_info\":{\"id\":");
    put_name(out, c, a);
    fm_str_puts(out, ",\"finish_reason\":");
    put_finish(out, a);
    fm_str_printf(out,
                  ",\"prompt_tokens\":%d,\"completion_tokens\":%d,\"cached_tokens\":%d,\"reasoning_"
                  "tokens\":0,"
                  "\"weight_version\":\"default\","
                  "\"cached_tokens_details\":{\"device\":%d,\"host\":%d,\"storage\":%d}",
                  (int)a->n_prompt, (int)a->n_output, (int)a->n_cached,
                  (int)(a->n_cached - a->n_cached_host - a->n_cached_storage),
                  (int)a->n_cached_host, (int)a->n_cached_storage);
    put_drafts(out, a);
    put_logprobs(out, a);
    if (a->finish != FM_FINISH_NONE) put_times(out, c, a);
    fm_str_puts(out, "}}");
}

static void say(fm__call *c, fm__answer *a, fm_str *out)
{
    if (a->ended) return;
    fm_str_puts(out, "data: ");
    put_answer(out, c, a, c->n_answer > 1 || c->ask->is_list);
    fm_str_puts(out, "\n\n");
    a->ended = a->finish != FM_FINISH_NONE;
    for (int i = 0; c->incremental && i < FM__N_SO_FAR; i++) fm_str_clear(&a->so_far[i]);
}

static void finish(fm__call *c, fm_str *out)
{
    (void)c;
    fm_str_puts(out, "data: [DONE]\n\n");
}

static void whole(fm__call *c, fm_str *out)
{
    const int list = c->ask->is_list || c->n_answer > 1;
    if (list) fm_str_puts(out, "[");
    for (int i = 0; i < c->n_answer; i++) {
        if (i) fm_str_puts(out, ",");
        put_answer(out, c, &c->answer[i], 0);
    }
    if (list) fm_str_puts(out, "]");
}

const fm__dialect fm__dialect_generate = {
    .id_prefix  = "",
    .read       = fm__read_generate,
    .say        = say,
    .finish     = finish,
    .whole      = whole,
    .error      = fm__put_error,
    .late_error = fm__put_late_error,
};
