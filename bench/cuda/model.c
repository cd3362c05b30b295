/* SPDX-License-Identifier: Apache-2.0 */
/* Whole models on dummy weights: decode and prefill against the roofline,
 * recorded and not, and where the time goes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/bound.h"
#include "bench/cuda/model.h"
#include "bench/cuda/model_profile.h"
#include "bench/cuda/sections.h"
#include "bench/cuda/stand.h"
#include "bench/median.h"
#include "device/cuda/device.h"

enum { WARM = 3, MIN_PASSES = 3, MAX_PASSES = 31, PROFILES = 5 };
static const double PASSES_US = 300e3, HOLD_US = 8e3;

/* The telling ones first: time may be over before all are done. */
static const int every_batch[] = {256, 32, 1, 128, 512, 8}, some_batches[] = {256, 32, 1};

/* --- results -------------------------------------------------------------- */

static fm_gpu_result result(const char *name, const char *how, int T, double us)
{
    fm_gpu_result x = {.T = T, .us = us};
    snprintf(x.name, sizeof x.name, "%s", name);
    snprintf(x.shape, sizeof x.shape, "%s", how);
    return x;
}

static void send_pass(const fm_gpu_stand *s, const char *name, const char *how,
                      const fm_shape *shape, double us)
{
    const fm_bound b = fm_bound_step(&s->config, shape, stand_ceilings());
    fm_gpu_result  x = result(name, how, shape->n_seq * shape->n_row, us);
    x.bytes          = b.cost.bytes;
    x.flop           = b.cost.flops;
    x.bound_us       = b.seconds * 1e6;
    x.tokens         = x.T;
    stand_send(&x);
}

static fm_shape decode_of(const fm_gpu_stand *s, int B)
{
    return (fm_shape){.n_seq = B, .n_row = 1, .pos0 = s->sizes.context, .generated = 1, .n_out = B};
}

static fm_shape prefill_of(int n) { return (fm_shape){.n_seq = 1, .n_row = n, .n_out = 1}; }

/* --- forward passes ------------------------------------------------------- */

/* The same pass again and again, the host never waiting: us between the ends
 * of two. */
static double passes_us(fm_gpu_stand *s, int n)
{
    double us[MAX_PASSES];
    stand_marks_reset();
    stand_mark(fm_gpu_stream(s->run));
    for (int i = 0; i < n; i++) {
        stand_need(fm_gpu_stand_pass(s));
        stand_mark(fm_gpu_stream(s->run));
    }
    stand_wait();
    for (int i = 0; i < n; i++) us[i] = stand_between(i, i + 1);
    return fm_median(us, n);
}

/* How many passes fit into the time for one number. */
static int passes_for(double us)
{
    const double n = PASSES_US / us;
    return n < MIN_PASSES ? MIN_PASSES : n > MAX_PASSES ? MAX_PASSES : (int)n;
}

static void time_forward(fm_gpu_stand *s, const char *name, const char *how, const fm_shape *shape)
{
    fm_gpu_stand_shape(s, shape);
    (void)passes_us(s, WARM); /* loads kernels, plans products, records the step */
    const int n = passes_for(passes_us(s, 1));
    send_pass(s, name, how, shape, passes_us(s, n));
}

/* --- steps: a pass, the choice of tokens, and the host has them ------------- */

/* Sampled tokens are not fed back: the experts they choose, and so the time, would change
 * from step to step. */

static double step_us(fm_gpu_stand *s, const fm_draw *draw, fm_sampled *out)
{
    const double from = fm_now();
    stand_need(fm_gpu_stand_pass(s));
    stand_need(fm_run_sample(s->run, &s->batch.batch, draw, out));
    return (fm_now() - from) * 1e6;
}

/* As an engine runs them: a step is put into the stream while the one before
 * runs.  us between the ends of two. */
static double steps_ahead_us(fm_gpu_stand *s, const fm_draw *draw, fm_sampled *out, int n)
{
    double us[MAX_PASSES];
    int    ticket[2];
    stand_marks_reset();
    for (int i = 0; i <= n; i++) {
        stand_need(fm_gpu_stand_pass(s));
        stand_need(fm_run_choose(s->run, &s->batch.batch, draw, &ticket[i % 2]));
        stand_mark(fm_gpu_stream(s->run));
        if (i) stand_need(fm_run_chosen(s->run, ticket[(i - 1) % 2], out));
    }
    stand_need(fm_run_chosen(s->run, ticket[n % 2], out));
    stand_wait();
    for (int i = 0; i < n; i++) us[i] = stand_between(i, i + 1);
    return fm_median(us, n);
}

/* The recorded pass alone, again and again; 0: it is not recorded. */
static double replays_us(fm_gpu_stand *s, int n)
{
    double         us[MAX_PASSES];
    const fm_graph graph = fm_gpu_recorded(s->run, s->batch.batch.n_row);
    if (!graph) return 0;
    stand_marks_reset();
    stand_mark(fm_gpu_stream(s->run));
    for (int i = 0; i < n; i++) {
        stand_need(fm_cuda_graph_start(graph, fm_gpu_stream(s->run)));
        stand_mark(fm_gpu_stream(s->run));
    }
    stand_wait();
    for (int i = 0; i < n; i++) us[i] = stand_between(i, i + 1);
    return fm_median(us, n);
}

static void time_steps_ahead(fm_gpu_stand *s, const char *how, const fm_shape *shape,
                             const fm_draw *draw, fm_sampled *out, int n)
{
    char         text[40];
    const double step = steps_ahead_us(s, draw, out, n), pass = replays_us(s, n);
    send_pass(s, "decode step ahead", how, shape, step);
    snprintf(text, sizeof text, "batch %d, tokens chosen", shape->n_seq);
    if (pass > 0) stand_number("between steps", text, step - pass, "us");
}

static void time_steps(fm_gpu_stand *s, const char *how, const fm_shape *shape)
{
    fm_sampling greedy = fm_sampling_default();
    greedy.temperature = 0;
    double      us[MAX_PASSES], about = 0;
    fm_draw    *draw = calloc((size_t)shape->n_out, sizeof *draw);
    fm_sampled *out  = calloc((size_t)shape->n_out, sizeof *out);
    FM_BUG_UNLESS(draw && out);
    for (int i = 0; i < shape->n_out; i++) draw[i].how = &greedy;
    fm_gpu_stand_shape(s, shape);
    for (int i = 0; i < WARM; i++) about = step_us(s, draw, out);
    const int n = passes_for(about);
    for (int i = 0; i < n; i++) us[i] = step_us(s, draw, out);
    send_pass(s, "decode step", how, shape, fm_median(us, n));
    time_steps_ahead(s, how, shape, draw, out, n);
    free(draw);
    free(out);
}

/* The bound takes experts to be equally likely; are they, in the last layer? */
static void count_experts(const fm_gpu_stand *s, int T)
{
    const size_t n      = (size_t)T * (size_t)s->config.top_k;
    int32_t     *expert = calloc(n, sizeof *expert);
    char        *is_met = calloc((size_t)s->config.n_expert, 1), shape[40];
    int          met    = 0;
    FM_BUG_UNLESS(expert && is_met);
    stand_need(fm_cuda_download(expert, s->run->act.route.expert, n * sizeof *expert,
                                fm_gpu_stream(s->run)));
    stand_wait();
    for (size_t i = 0; i < n; i++)
        if (expert[i] >= 0 && !is_met[expert[i]]) is_met[expert[i]] = 1, met++;
    snprintf(shape, sizeof shape, "batch %d; equally likely: %.1f", T,
             fm_experts_met(&s->config, T));
    stand_number("experts met", shape, met, "experts");
    free(expert);
    free(is_met);
}

/* --- where the time goes ---------------------------------------------------- */

static void send_profile(const fm_gpu_stand *s, const char *how, const fm_shape *shape,
                         const double us[FM_N_OP])
{
    const fm_bound b   = fm_bound_step(&s->config, shape, stand_ceilings());
    const int      T   = shape->n_seq * shape->n_row;
    double         sum = 0;
    for (fm_op op = 0; op < FM_N_OP; op++) {
        fm_gpu_result x = result(fm_op_name(op), how, T, us[op]);
        x.bound_us      = b.op[op] * 1e6;
        sum += us[op];
        if (us[op] > 0) stand_send(&x);
    }
    fm_gpu_result all = result("all ops", how, T, sum);
    all.bound_us      = b.seconds * 1e6;
    stand_send(&all);
}

/* The stream is held while the host puts a pass into it, so that no op waits
 * for the host. */
static void profile(fm_gpu_stand *s, const char *how, const fm_shape *shape)
{
    double us[FM_N_OP], mean[FM_N_OP] = {0};
    fm_gpu_stand_shape(s, shape);
    (void)passes_us(s, WARM);
    fm_gpu_profile_begin(s->run);
    for (int i = -1; i < PROFILES; i++) { /* the first makes the marks */
        stand_hold(fm_gpu_stream(s->run), HOLD_US);
        stand_need(fm_gpu_stand_pass(s));
        stand_wait();
        fm_gpu_profile_take(us);
        for (int k = 0; i >= 0 && k < FM_N_OP; k++) mean[k] += us[k] / PROFILES;
    }
    fm_gpu_profile_end(s->run);
    send_profile(s, how, shape, mean);
}

/* --- a model ---------------------------------------------------------------- */

static void new_run(fm_gpu_stand *s, const char *how, const fm_run_cuda_options *o)
{
    fm_cuda_device gpu;
    const double   from = fm_now();
    stand_need(fm_gpu_stand_run(s, o));
    stand_wait();
    stand_number("run, cache filled", how, fm_now() - from, "s");
    stand_need(fm_cuda_open(&gpu, 0));
    stand_number("memory left", how, (double)gpu.available / (1 << 30), "GiB");
}

static void measure_recorded(fm_gpu_stand *s)
{
    const fm_run_cuda_options o = {.pads = 1, .records = !s->sizes.no_graphs};
    new_run(s, "recorded", &o);
    for (size_t i = 0; i < sizeof every_batch / sizeof *every_batch && !stand_is_over(); i++) {
        const fm_shape shape = decode_of(s, every_batch[i]);
        if (shape.n_seq > s->sizes.batch) continue;
        time_forward(s, "decode", "recorded", &shape);
        count_experts(s, shape.n_seq);
        time_steps(s, "recorded", &shape);
    }
    for (int n = s->sizes.prompt; n >= s->sizes.prompt / 4 && !stand_is_over(); n /= 4) {
        const fm_shape shape = prefill_of(n);
        time_forward(s, "prefill", "", &shape);
    }
}

static void measure_launched(fm_gpu_stand *s)
{
    const fm_run_cuda_options o = {.pads = 1};
    char                      how[40];
    if (stand_is_over()) return;
    new_run(s, "not recorded", &o);
    for (size_t i = 0; i < sizeof some_batches / sizeof *some_batches && !stand_is_over(); i++) {
        const fm_shape shape = decode_of(s, some_batches[i]);
        if (shape.n_seq > s->sizes.batch) continue;
        time_forward(s, "decode", "not recorded", &shape);
        snprintf(how, sizeof how, "op by op, batch %d", shape.n_seq);
        profile(s, how, &shape);
    }
    const fm_shape shape = prefill_of(s->sizes.prompt);
    if (!stand_is_over()) profile(s, "op by op, prefill", &shape);
}

void fm_gpu_measure_model(const char *shape, const char *json, const fm_gpu_sizes *sizes)
{
    fm_gpu_stand s;
    const double from = fm_now();
    stand_need(fm_gpu_stand_open(&s, shape, json, sizes));
    stand_wait();
    stand_number("weights", "made on the GPU", fm_now() - from, "s");
    stand_number("weights", "", (double)s.slab_bytes * 1e-9, "GB");
    measure_recorded(&s);
    measure_launched(&s);
    fm_gpu_stand_close(&s);
}

static const fm_gpu_sizes usual = {.batch = 512, .context = 500, .prompt = 4096, .page = 64};

void section_v2_lite(void) { fm_gpu_measure_model("v2-lite", NULL, &usual); }

void section_r1_bf16(void)
{
    fm_gpu_measure_model("r1", "{\"num_hidden_layers\": 8, \"quantization_config\": null}", &usual);
}

void section_r1_fp8(void) { fm_gpu_measure_model("r1", "{\"num_hidden_layers\": 13}", &usual); }
