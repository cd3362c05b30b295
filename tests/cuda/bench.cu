/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark of whole models, with a stand that collects: does every pass it
 * would time run, and does it report what it should? */
#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "bench/cuda/stand.h"
#include "bench_tiny.h"
#include "check.h"

#ifdef __CUDACC__
enum { NO_GRAPHS = 0 };
#else
enum { NO_GRAPHS = 1 }; /* the emulator records nothing */
#endif

static std::vector<fm_gpu_result> sent;
static int                        n_mark, n_held;

/* --- the stand: a mark is so long after the last that few passes are asked for --- */

static const double MARK_US = 1e6;

void stand_need(fm_status s)
{
    if (s == FM_OK) return;
    fm_check_failed(__FILE__, __LINE__, "%s", fm_why());
    printf("%s\n", fm_why());
    exit(1);
}

int stand_is_over(void) { return 0; }

const fm_roof *stand_ceilings(void) { return &fm_roof_h200; }

void stand_marks_reset(void) { n_mark = 0; }

int stand_mark(fm_stream stream)
{
    FM_CHECK(stream != NULL);
    return n_mark++;
}

double stand_between(int from, int to)
{
    FM_CHECK(0 <= from && from < to && to < n_mark);
    return (to - from) * MARK_US;
}

void stand_wait(void) { fm_check_cuda(cudaDeviceSynchronize(), "wait"); }

void stand_hold(fm_stream stream, double us)
{
    FM_CHECK(stream != NULL && us > 0);
    n_held++;
}

double stand_median(double *x, int n)
{
    FM_CHECK(n > 0);
    std::sort(x, x + n);
    return x[n / 2];
}

void stand_send(const fm_gpu_result *x) { sent.push_back(*x); }

void stand_number(const char *name, const char *shape, double value, const char *unit)
{
    fm_gpu_result x = {};
    snprintf(x.name, sizeof x.name, "%s", name);
    snprintf(x.shape, sizeof x.shape, "%s", shape);
    snprintf(x.unit, sizeof x.unit, "%s", unit);
    x.value = value;
    sent.push_back(x);
}

/* --- tests ------------------------------------------------------------------------ */

/* Results with this name whose shape begins so and that are about T rows. */
static int count(const char *name, const char *shape, int T)
{
    int n = 0;
    for (const fm_gpu_result &x : sent)
        n += !strcmp(x.name, name) && !strncmp(x.shape, shape, strlen(shape)) && x.T == T;
    return n;
}

static double ops_of(const char *name, const char *shape, int T)
{
    for (const fm_gpu_result &x : sent)
        if (!strcmp(x.name, name) && !strncmp(x.shape, shape, strlen(shape)) && x.T == T)
            return round(x.us / MARK_US);
    return -1;
}

static void run_once()
{
    if (sent.empty()) fm_bench_tiny(NO_GRAPHS);
}

FM_TEST(bench_times_every_step_of_a_model)
{
    run_once();
    for (int B : {1, 8}) {
        FM_CHECK(count("decode", "recorded", B) == 1);
        FM_CHECK(count("decode step", "recorded", B) == 1);
    }
    FM_CHECK(count("decode", "not recorded", 1) == 1);
    FM_CHECK(count("prefill", "", FM_TINY_PROMPT) == 1);
    FM_CHECK(count("prefill", "", FM_TINY_PROMPT / 4) == 1);
    FM_CHECK(count("all ops", "op by op, batch 1", 1) == 1);
    FM_CHECK(count("all ops", "op by op, prefill", FM_TINY_PROMPT) == 1);
    for (const fm_gpu_result &x : sent) {
        FM_CHECK(x.unit[0] || (x.us > 0 && isfinite(x.us)));
        FM_CHECK(isfinite(x.bound_us) && isfinite(x.bytes) && isfinite(x.flop));
        if (!strcmp(x.name, "experts met")) FM_CHECK(x.value >= 2 && x.value <= FM_TINY_EXPERTS);
    }
}

/* An op is one mark. */
FM_TEST(bench_counts_ops_by_kind)
{
    const char *how = "op by op, batch 1";
    run_once();
    FM_CHECK(n_held > 0);
    FM_CHECK(ops_of("embed", how, 1) == 1);
    FM_CHECK(ops_of("attend", how, 1) == FM_TINY_LAYERS);
    FM_CHECK(ops_of("store_kv", how, 1) == FM_TINY_LAYERS);
    FM_CHECK(ops_of("linear", how, 1) == 3 * FM_TINY_LAYERS + 1); /* q down, kv, out; router */
    FM_CHECK(ops_of("linear_act", how, 1) == FM_TINY_LAYERS);     /* q up */
    FM_CHECK(ops_of("experts", how, 1) == 1);
    FM_CHECK(ops_of("mlp", how, 1) == 2);
    FM_CHECK(ops_of("head", how, 1) == 1);
}
