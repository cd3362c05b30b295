/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/scaled.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MIB 1048576.0

/* As NVIDIA publishes them: memory that the driver shows, TB/s, dense BF16 TFLOP/s. */
static const struct {
    const char *kind, *in_name; /* what the driver's name of it contains; the longer first */
    double      memory, read, peak;
} gpus[] = {
    {"H200", "H200", 143771 * MIB, 4.8, 989}, {"H100-PCIe", "H100 PCIe", 81559 * MIB, 2.0, 756},
    {"H100", "H100", 81559 * MIB, 3.35, 989}, {"H800", "H800", 81559 * MIB, 3.35, 989},
    {"H20", "H20", 97871 * MIB, 4.0, 148},
};
enum { N_GPU = sizeof gpus / sizeof gpus[0] };

/* Shares of another GPU's limits, and of another CPU's: instructions and caches differ, too. */
static const double gpu_spread = 0.15, cpu_spread = 0.3;

static int find(const char *kind)
{
    for (int i = 0; i < N_GPU; i++)
        if (!strcasecmp(gpus[i].kind, kind)) return i;
    return -1;
}

const char *fm_gpu_kind(const char *name)
{
    for (int i = 0; i < N_GPU; i++)
        if (strstr(name, gpus[i].in_name) || strstr(name, gpus[i].kind)) return gpus[i].kind;
    return NULL;
}

const char *fm_scaled_from(const char *kind)
{
    return find(kind) > 0 ? gpus[0].kind : NULL; /* the first was measured itself */
}

void fm_scale_gpu(fm_tuned *t, const char *kind)
{
    const int    i    = find(kind);
    const double read = gpus[i].read / gpus[0].read, peak = gpus[i].peak / gpus[0].peak;
    FM_BUG_UNLESS(i > 0);
    t->memory = gpus[i].memory;
    t->read *= read;
    t->peak_f32 *= peak;
    t->peak_bf16 *= peak;
    t->peak_fp8 *= peak;
    t->near = t->far = (fm_link){0}; /* those of its kind */
    t->tiers         = (fm_tier_rates){0};
    if (t->spread < gpu_spread) t->spread = gpu_spread;
    snprintf(t->about, sizeof t->about, "scaled from %.16s by published rates, not measured",
             t->name);
    snprintf(t->name, sizeof t->name, "%s", gpus[i].kind);
}

void fm_scale_cpu(fm_tuned *t, const fm_cpu_limits *l)
{
    t->n_thread  = l->n_thread;
    t->memory    = l->memory;
    t->read      = l->read;
    t->read_one  = l->read_one;
    t->peak_f32  = l->peak_f32;
    t->peak_bf16 = t->peak_fp8 = l->peak_bf16;
    if (t->spread < cpu_spread) t->spread = cpu_spread;
    snprintf(t->about, sizeof t->about, "scaled from %.16s by measured bandwidth and peaks",
             t->name);
}
