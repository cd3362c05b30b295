/* SPDX-License-Identifier: Apache-2.0 */
/* What recording costs: the same decode steps with and without a trace, alternating; single spans.
 *
 *     bench_trace_cost [MODEL [BATCH [ROUNDS [STEPS]]]]      r1-mini 1 12 25
 *
 * Steps alternate in blocks (off on on off ...), and blocks are compared, so that what
 * else the machine does falls on both alike.  A block counts by the median of its steps, or, if
 * STEPS says how long it is, by their mean: on a GPU one of 31 steps is timed, and only a mean over
 * several hundred has its part of these.  Without a trace a step has one test of a pointer for
 * every phase and op: their cost is measured alone and added up. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/median.h"
#include "llm/engine.h"
#include "trace/trace.h"
#include "trace/trace_read.h"

enum { BLOCK = 25, MAX_BLOCK = 10000, MAX_ROUNDS = 1000, PHASES = 12 };

static const char *file;
static int         n_step = BLOCK, by_mean;

static void stop(const char *what)
{
    fprintf(stderr, "bench_trace_cost: %s: %s\n", what, fm_why());
    unlink(file);
    exit(1);
}

static void check(fm_status rc, const char *what)
{
    if (rc != FM_OK) stop(what);
}

/* --- spans alone --------------------------------------------------------------- */

static double span_ns(void)
{
    enum { N = 1000000 };
    fm_trace              *t = NULL;
    const fm_trace_options o = {.path = file, .ring_bytes = 16 << 20, .n_rank = 1};
    const fm_trace_key     k = {.cls = FM_TRACE_WORK, .name = "span"};
    check(fm_trace_open(&t, &o), "open");
    const int      key   = fm_trace_key_of(t, &k);
    const uint64_t began = fm_trace_now();
    for (int i = 0; i < N; i++) {
        const uint64_t from = fm_trace_now();
        fm_trace_add(
            t, key,
            &(fm_trace_event){.begin = from, .end = fm_trace_now(), .bytes = 1e6, .flops = 1e7});
    }
    const double ns = (double)(fm_trace_now() - began) / N;
    fm_trace_close(t);
    return ns;
}

/* A test of a pointer that the compiler cannot foresee. */
static double test_ns(void)
{
    enum { N = 100000000 };
    void *volatile tracing = NULL;
    int            n       = 0;
    const uint64_t began   = fm_trace_now();
    for (int i = 0; i < N; i++)
        if (tracing) n++;
    return (double)(fm_trace_now() - began + (uint64_t)n) / N;
}

/* --- an engine ----------------------------------------------------------------- */

static fm_engine *open_engine(const char *model, int batch, int n_output)
{
    enum { PROMPT = 16, LEAST = 65536 };
    fm_options *o = NULL;
    fm_engine  *e = NULL;
    char        running[16], tokens[16];
    const int   need = batch * (2 * PROMPT + n_output);
    snprintf(running, sizeof running, "%d", batch);
    snprintf(tokens, sizeof tokens, "%d", need > LEAST ? need : LEAST);
    check(fm_options_create(&o), "options");
    check(fm_options_set(o, "model-path", model), "model");
    check(fm_options_set(o, "max-running-requests", running), "batch");
    check(fm_options_set(o, "max-total-tokens", tokens), "tokens");
    check(fm_options_set(o, "cpu-bind", "auto"), "cores");
    check(fm_engine_open(&e, o), "open");
    fm_options_destroy(o);
    return e;
}

static void submit(fm_engine *e, int batch, int n_output)
{
    int32_t   token[16];
    fm_prompt p               = {.token = token, .n_token = 16, .sampling = fm_sampling_default()};
    p.sampling.temperature    = 0;
    p.sampling.ignore_eos     = 1;
    p.sampling.max_new_tokens = n_output;
    for (int b = 0; b < batch; b++) {
        for (int i = 0; i < 16; i++) token[i] = 1 + (b * 131 + i * 17) % 1000;
        check(fm_engine_submit(e, &p, NULL), "submit");
    }
}

/* Seconds of a step of a block. */
static double block(fm_engine *e)
{
    static double x[MAX_BLOCK];
    const double  from = fm_now();
    fm_event      ev;
    for (int i = 0; i < n_step; i++) {
        const double began = fm_now();
        check(fm_engine_step(e), "step");
        x[i] = fm_now() - began;
        while (fm_engine_poll(e, &ev)) continue;
    }
    return by_mean ? (fm_now() - from) / n_step : fm_median(x, n_step);
}

static double recorded_block(fm_engine *e)
{
    check(fm_engine_trace_begin(e, file, 0), "begin");
    const double s = block(e);
    check(fm_engine_trace_end(e), "end");
    return s;
}

/* Spans of a step in the last file. */
static double spans_of_step(void)
{
    fm_trace_file f = {0};
    check(fm_trace_load(&f, file), "read");
    const double n = (double)f.n_span / n_step;
    fm_trace_file_fini(&f);
    return n;
}

int main(int argc, char **argv)
{
    const char   *model = argc > 1 ? argv[1] : "r1-mini";
    const int     batch = argc > 2 ? atoi(argv[2]) : 1, rounds = argc > 3 ? atoi(argv[3]) : 12;
    static double off[MAX_ROUNDS], on[MAX_ROUNDS], ratio[MAX_ROUNDS];
    char          name[] = "/tmp/fathom-trace-cost-XXXXXX";
    const int     fd     = mkstemp(name);
    by_mean              = argc > 4;
    if (by_mean) n_step = atoi(argv[4]);
    if (fd < 0 || rounds < 1 || rounds > MAX_ROUNDS || batch < 1 || n_step < 1 ||
        n_step > MAX_BLOCK)
        return 2;
    close(fd);
    file = name;

    const int  n_output = (2 * rounds + 2) * n_step;
    fm_engine *e        = open_engine(model, batch, n_output);
    submit(e, batch, n_output);
    block(e);
    for (int r = 0; r < rounds; r++) {
        if (r % 2) on[r] = recorded_block(e);
        off[r] = block(e);
        if (r % 2 == 0) on[r] = recorded_block(e);
        ratio[r] = on[r] / off[r];
    }
    const double n = spans_of_step(), step = fm_median(off, rounds),
                 cost = fm_median(ratio, rounds) - 1;
    const double one = span_ns(), test = test_ns();
    printf("%s, batch %d: a decode step of %.1f us, %.0f spans\n", model, batch, 1e6 * step, n);
    printf("  recorded: %+.2f %% (median of %d blocks of %d steps); a span alone takes %.0f ns, "
           "%.2f %% of a step\n",
           100 * cost, rounds, n_step, one, 1e-7 * one * n / step);
    printf("  not recorded: %.0f tests of a pointer at %.2f ns, %.5f %% of a step\n",
           2 * n + PHASES, test, 1e-7 * test * (2 * n + PHASES) / step);
    fm_engine_close(e);
    unlink(name);
    return 0;
}
