/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/backend.h"

#include <string.h>

#include "device/host.h"
#include "llm/load/weights_fill.h"

/* --- the CPU -------------------------------------------------------------- */

static int always(void)
{
    return 1;
}

static fm_status open_cpu(const fm_backend_options *o, fm_backend_memory *out)
{
    (void)o;
    *out = (fm_backend_memory){.total = fm_host_total(), .available = fm_host_available()};
    return FM_OK;
}

static fm_run_bytes cpu_bytes(const fm_model_config *c, const fm_shard *shard, fm_dtype act,
                              const fm_run_limits *lim, const fm_backend_options *o)
{
    (void)o;
    return fm_run_cpu_bytes(c, shard, act, lim);
}

static fm_status create_cpu(fm_run **out, const fm_weights *w, const fm_run_limits *lim,
                            fm_ranks ranks, const fm_backend_options *o)
{
    (void)o;
    return fm_run_create_cpu(out, w, lim, ranks);
}

const fm_backend fm_backend_cpu = {
    .name     = "cpu",
    .packing  = FM_PACK_PANELS,
    .is_host  = 1,
    .is_there = always,
    .open     = open_cpu,
    .bytes    = cpu_bytes,
    .fill     = fm_weights_fill,
    .create   = create_cpu,
};

/* --- choosing ------------------------------------------------------------- */

static fm_status find_cuda(const fm_backend **out, fm_dtype act)
{
    const fm_backend *cuda = fm_backend_cuda();
    if (!cuda)
        return fm_fail(FM_E_NOSUP, "--device cuda: this build computes on cpu; build it where nvcc is");
    if (act != FM_BF16) return fm_fail(FM_E_NOSUP, "--device cuda computes in bfloat16");
    if (!cuda->is_there())
        return fm_fail(FM_E_DEVICE, "--device cuda: no GPU can be used here (nvidia-smi says more)");
    *out = cuda;
    return FM_OK;
}

fm_status fm_backend_find(const fm_backend **out, const char *word, fm_dtype act)
{
    const fm_backend *cuda = fm_backend_cuda();
    const int         best = !strcmp(word, "auto") && cuda && act == FM_BF16 && cuda->is_there();
    *out                   = best ? cuda : &fm_backend_cpu;
    if (!strcmp(word, "cuda")) return find_cuda(out, act);
    if (strcmp(word, "auto") && strcmp(word, "cpu"))
        return fm_fail(FM_E_ARG, "--device %s is none of auto, cpu, cuda", word);
    return FM_OK;
}
