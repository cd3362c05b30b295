/* SPDX-License-Identifier: Apache-2.0 */
/* Latency of one batch: prefill alone, then decode alone.
 *
 * The engine mixes prefill and decode, so the two are taken apart here: first
 * every prompt is asked for one token, which is nothing but prefill; then the
 * same prompts are asked for more, and only steps in which the whole batch
 * decodes are counted.  With speculation a step gives several tokens: steps are
 * counted until the batch has as many as were asked for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bench.h"

typedef struct {
    int    batch, input, output;
    double prefill; /* seconds */
    double decode_median, decode_sum;
    double decode_rate;   /* tokens per second of the median step, */
    double decode_mean;   /* and of all steps together */
    double accept_length; /* tokens of a sequence in a step; 0: no speculation */
    double accept_rate;   /* share of the drafts verified that were right */
} measure;

static fm_status read_list(int **out, int *n, const char *flag, const char *text)
{
    int *list = NULL;
    *n        = 0;
    for (const char *s = text; *s;) {
        char *end;
        errno           = 0;
        const long v    = strtol(s, &end, 10);
        int       *more = realloc(list, (size_t)(*n + 1) * sizeof *list);
        if (more) list = more;
        if (end == s || (*end && *end != ',') || errno || v < 1 || v > 1 << 24 || !more) {
            free(list);
            return fm_fail(FM_E_ARG, "--%s: \"%s\" is not a list of numbers from 1 to %d", flag,
                           text, 1 << 24);
        }
        list[(*n)++] = (int)v;
        s            = end + (*end == ',');
    }
    if (*n == 0) return fm_fail(FM_E_ARG, "--%s: the list is empty", flag);
    *out = list;
    return FM_OK;
}

fm_status fm_bench_lists_init(fm_bench_lists *l, const fm_bench_options *b)
{
    FM_TRY(read_list(&l->batch, &l->n_batch, "batch-size", b->batch_size ? b->batch_size : "1"));
    FM_TRY(read_list(&l->input, &l->n_input, "input-len", b->input_len ? b->input_len : "1024"));
    return read_list(&l->output, &l->n_output, "output-len", b->output_len ? b->output_len : "16");
}

void fm_bench_lists_fini(fm_bench_lists *l)
{
    free(l->batch);
    free(l->input);
    free(l->output);
    *l = (fm_bench_lists){0};
}

int fm_bench_lists_max_batch(const fm_bench_lists *l)
{
    int most = 0;
    for (int i = 0; i < l->n_batch; i++)
        if (l->batch[i] > most) most = l->batch[i];
    return most;
}

static fm_status submit(fm_engine *e, const measure *m, const int32_t *token, int n_new,
                        uint64_t *id)
{
    fm_prompt p               = {.n_token = m->input, .sampling = fm_sampling_default()};
    p.sampling.temperature    = 0;
    p.sampling.ignore_eos     = 1;
    p.sampling.max_new_tokens = n_new;
    for (int i = 0; i < m->batch; i++) {
        p.token = token + (size_t)i * (size_t)m->input;
        FM_TRY(fm_engine_submit(e, &p, &id[i]));
    }
    return FM_OK;
}

/* Counts the tokens that came out of the last step. */
static fm_status drain(fm_engine *e, int *n_token)
{
    fm_event  ev;
    fm_status rc = FM_OK;
    *n_token     = 0;
    while (fm_engine_poll(e, &ev)) {
        *n_token += ev.token >= 0;
        if (ev.finish == FM_FINISH_ERROR) rc = fm_fail(FM_E_FORMAT, "%s", fm_finish_why(ev.finish));
    }
    return rc;
}

static fm_status time_prefill(fm_engine *e, measure *m, const int32_t *token, uint64_t *id,
                              int *n_step)
{
    const double began = fm_now();
    int          n_token;
    *n_step = 0;
    FM_TRY(submit(e, m, token, 1, id));
    while (fm_engine_busy(e)) {
        FM_TRY(fm_engine_step(e));
        (*n_step)++;
        FM_TRY(drain(e, &n_token));
    }
    m->prefill = fm_now() - began;
    return FM_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Steps until every sequence has a token: one, or as many as a pipeline has
 * passes in flight, or, with replicas, until there are as many tokens. */
typedef struct {
    int    n_step, n_token;
    double seconds;
} round_time;

/* Whether the step that took so long and gave n_token tokens ends a round of
 * the whole batch; a round that did not work out is forgotten. */
static int ends_round(round_time *r, const measure *m, double took, int n_token, int steps)
{
    r->n_step++;
    r->n_token += n_token;
    r->seconds += took;
    if (steps ? r->n_token == m->batch : r->n_token >= m->batch) return 1;
    if (steps && r->n_step >= steps) *r = (round_time){0};
    return 0;
}

/* While the last prompts are still being read the first answers grow, by at
 * most a token per prefill step: `spare` keeps them alive until all decode. */
static fm_status time_decode(fm_engine *e, measure *m, const int32_t *token, uint64_t *id,
                             int spare)
{
    const int want = m->output - 1;
    if (want == 0) return FM_OK;
    double *step = calloc((size_t)want, sizeof *step);
    if (!step) return fm_fail(FM_E_OOM, "step times");

    fm_status  rc = submit(e, m, token, m->output + spare, id);
    int        n  = 0;
    round_time r  = {0};
    while (rc == FM_OK && n < want && fm_engine_busy(e)) {
        const fm_engine_info before = fm_engine_get_info(e);
        const double         began  = fm_now();
        int                  n_token = 0;
        rc                          = fm_engine_step(e);
        const double took           = fm_now() - began;
        if (rc == FM_OK) rc = drain(e, &n_token);
        if (fm_engine_get_info(e).sched.n_prefill_row != before.sched.n_prefill_row) {
            r = (round_time){0};
        } else if (ends_round(&r, m, took, n_token, before.steps_per_round)) {
            step[n++] = r.seconds;
            r         = (round_time){.n_token = r.n_token - m->batch};
        }
    }
    for (int i = 0; i < m->batch; i++) fm_engine_cancel(e, id[i]);
    while (rc == FM_OK && fm_engine_busy(e)) rc = fm_engine_step(e);
    if (rc == FM_OK) rc = drain(e, &r.n_token);

    if (rc == FM_OK && n < want)
        rc = fm_fail(FM_E_FULL,
                     "only %d of %d steps ran with all %d sequences; the KV pool or "
                     "--max-running-requests is too small",
                     n, want, m->batch);
    for (int i = 0; i < n; i++) m->decode_sum += step[i];
    qsort(step, (size_t)n, sizeof *step, ascending);
    m->decode_median = n % 2 ? step[n / 2] : n ? (step[n / 2 - 1] + step[n / 2]) / 2 : 0;
    m->decode_rate   = m->decode_median > 0 ? m->batch / m->decode_median : 0;
    m->decode_mean   = m->decode_sum > 0 ? (double)m->batch * n / m->decode_sum : 0;
    free(step);
    return rc;
}

/* Answers may be twice as long, so that none ends before the others are there. */
static int most_output(const measure *m)
{
    return 2 * m->output;
}

static double accept_rate_since(const fm_sched_stats *first, const fm_engine *e)
{
    const fm_sched_stats now     = fm_engine_get_info(e).sched;
    const int64_t        n_draft = now.n_draft - first->n_draft;
    return n_draft ? (double)(now.n_accepted - first->n_accepted) / (double)n_draft : 0;
}

static fm_status time_drafts(fm_engine *e, measure *m, const int32_t *token, uint64_t *id, int spare)
{
    const int64_t want   = (int64_t)(m->output - 1) * m->batch;
    int64_t       tokens = 0;
    int           n_step = 0, n_token = 0;
    fm_sched_stats first = fm_engine_get_info(e).sched;
    fm_status     rc     = submit(e, m, token, most_output(m) + spare, id);
    while (rc == FM_OK && tokens < want && fm_engine_busy(e)) {
        const fm_sched_stats before = fm_engine_get_info(e).sched;
        const double         began  = fm_now();
        rc                          = fm_engine_step(e);
        const double took           = fm_now() - began;
        if (rc == FM_OK) rc = drain(e, &n_token);
        if (fm_engine_get_info(e).sched.n_prefill_row != before.n_prefill_row) continue;
        m->decode_sum += took;
        tokens += n_token;
        n_step++;
    }
    m->accept_rate = accept_rate_since(&first, e);
    for (int i = 0; i < m->batch; i++) fm_engine_cancel(e, id[i]);
    while (rc == FM_OK && fm_engine_busy(e)) rc = fm_engine_step(e);
    if (rc == FM_OK) rc = drain(e, &n_token);
    if (rc != FM_OK || !n_step) return rc;
    m->decode_median = m->decode_sum / n_step; /* steps with more and with fewer drafts count */
    m->decode_rate = m->decode_mean = (double)tokens / m->decode_sum;
    m->accept_length = (double)tokens / m->batch / n_step;
    return FM_OK;
}

static fm_status measure_batch(fm_engine *e, measure *m, uint64_t seed)
{
    const size_t n     = (size_t)m->batch * (size_t)m->input;
    const int    vocab = fm_engine_config(e)->vocab;
    fm_status    rc    = FM_OK;
    int32_t     *token = malloc(n * sizeof *token);
    uint64_t    *id    = calloc((size_t)m->batch, sizeof *id);
    int          n_step;

    if (!token || !id) {
        rc = fm_fail(FM_E_OOM, "%d prompts of %d tokens", m->batch, m->input);
        goto out;
    }
    for (size_t i = 0; i < n; i++) token[i] = (int32_t)(fm_rng_u32(seed, i) % (uint32_t)vocab);
    fm_engine_flush_cache(e);
    FM_GO(time_prefill(e, m, token, id, &n_step));
    FM_GO((fm_engine_get_info(e).max_draft ? time_drafts : time_decode)(e, m, token, id, n_step));
out:
    free(token);
    free(id);
    return rc;
}

static json_t *line_of(const measure *m, const fm_engine *e, const fm_options *o,
                       const fm_bench_options *b)
{
    const double total = m->prefill + m->decode_sum;
    json_t      *line =
        json_pack("{s:s, s:i, s:i, s:i, s:f, s:f}", "run_name", b->run_name, "batch_size", m->batch,
                  "input_len", m->input, "output_len", m->output, "prefill_latency", m->prefill,
                  "prefill_throughput", m->batch * (double)m->input / m->prefill);
    FM_BUG_UNLESS(line != NULL);
    if (m->output > 1) {
        json_object_set_new(line, "median_decode_latency", json_real(m->decode_median));
        json_object_set_new(line, "median_decode_throughput",
                            json_real(m->decode_rate));
        json_object_set_new(line, "decode_throughput", json_real(m->decode_mean));
        if (m->accept_length > 0) {
            json_object_set_new(line, "accept_length", json_real(m->accept_length));
            json_object_set_new(line, "spec_accept_rate", json_real(m->accept_rate));
        }
    }
    json_object_set_new(line, "total_latency", json_real(total));
    json_object_set_new(line, "overall_throughput",
                        json_real(m->batch * ((double)m->input + m->output) / total));
    const fm_engine_info info = fm_engine_get_info(e);
    fm_bench_describe(line, o, &info);
    return line;
}

static void print_row(const measure *m, const fm_engine_info *info)
{
    const double total = m->prefill + m->decode_sum;
    printf("%6d %7d %7d %12.4f %12.2f %12.4f %12.2f %10.3f %12.2f", m->batch, m->input, m->output,
           m->prefill, m->batch * (double)m->input / m->prefill, m->decode_median, m->decode_rate,
           total, m->batch * ((double)m->input + m->output) / total);
    if (m->accept_length > 0)
        printf("   accept length %.2f, rate %.2f%s", m->accept_length, m->accept_rate,
               fm_bench_simulated(info));
    putchar('\n');
    fflush(stdout);
}

/* In words when the pool or the context is too small for it. */
static fm_status fits(const fm_engine *e, const measure *m)
{
    const fm_plan plan    = fm_engine_get_info(e).plan;
    const int     context = fm_engine_context(e);
    const int     output  = fm_engine_get_info(e).max_draft ? most_output(m) : m->output;
    const int64_t each    = (int64_t)m->input + output + plan.page_size;
    if (each > context)
        return fm_fail(FM_E_ARG, "%d + %d tokens do not fit in a context of %d", m->input,
                       m->output, context);
    if (each * m->batch > plan.max_tokens)
        return fm_fail(FM_E_ARG,
                       "a batch of %d x (%d + %d) tokens does not fit in a KV pool of %lld",
                       m->batch, m->input, m->output, (long long)plan.max_tokens);
    return FM_OK;
}

static fm_status warm_up(fm_engine *e, const measure *first)
{
    measure m = *first;
    if (m.output > 8) m.output = 8;
    return measure_batch(e, &m, 0);
}

/* The other combinations are measured even if the file takes no more. */
static int append(const char *path, json_t *line)
{
    if (fm_bench_append("result-filename", path, line) == FM_OK) return 1;
    fprintf(stderr, "fathom bench: %s\n", fm_why());
    return 0;
}

fm_status fm_bench_one_batch(fm_engine *e, const fm_options *o, const fm_bench_options *b,
                             const fm_bench_lists *l)
{
    int n_done = 0, n_lost = 0;
    for (int i = 0; i < l->n_batch * l->n_input * l->n_output; i++) {
        measure m = {.batch  = l->batch[i / (l->n_input * l->n_output)],
                     .input  = l->input[i / l->n_output % l->n_input],
                     .output = l->output[i % l->n_output]};
        if (fits(e, &m) != FM_OK) {
            fprintf(stderr, "fathom bench: skipped: %s\n", fm_why());
            continue;
        }
        if (n_done == 0 && !b->skip_warmup) FM_TRY(warm_up(e, &m));
        if (n_done++ == 0)
            printf("%6s %7s %7s %12s %12s %12s %12s %10s %12s\n", "batch", "input", "output",
                   "prefill(s)", "prefill t/s", "decode(s)", "decode t/s", "total(s)",
                   "overall t/s");
        FM_TRY(measure_batch(e, &m, (uint64_t)b->seed));
        const fm_engine_info info = fm_engine_get_info(e);
        print_row(&m, &info);
        if (b->result_filename && *b->result_filename)
            n_lost += !append(b->result_filename, line_of(&m, e, o, b));
    }
    if (n_lost)
        return fm_fail(FM_E_IO, "--result-filename %s: %d of %d lines could not be written",
                       b->result_filename, n_lost, n_done);
    return n_done ? FM_OK : fm_fail(FM_E_ARG, "no batch of the lists fits");
}
