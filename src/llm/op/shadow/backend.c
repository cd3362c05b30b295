/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's back end with the GPU's running along, compared op by op. */
#include "llm/load/weights_fill.h"
#include "llm/op/backend.h"
#include "llm/op/shadow/shadow.h"

static fm_status is_usable(void)
{
    return fm_backend_cuda()->is_usable();
}

static fm_status open_host(const fm_backend_options *o, fm_backend_memory *out)
{
    return fm_backend_cpu.open(o, out);
}

static size_t workspace(const fm_model_config *c, const fm_shard *shard, fm_dtype act,
                        const fm_run_limits *lim)
{
    return fm_run_cpu_workspace(c, shard, act, lim) + fm_run_shadow_bytes(c, lim);
}

static fm_status create(fm_run **out, const fm_weights *w, const fm_run_limits *lim, fm_ranks ranks,
                        const fm_backend_options *o)
{
    fm_backend_options one_by_one = *o;
    fm_run            *cpu = NULL, *gpu = NULL;
    one_by_one.no_graphs = one_by_one.immediate = 1;
    FM_TRY(fm_backend_cpu.create(&cpu, w, lim, ranks, o));
    const fm_status rc = fm_backend_cuda()->create(&gpu, o->beside, lim, ranks, &one_by_one);
    if (rc != FM_OK) {
        fm_run_destroy(cpu);
        return rc;
    }
    return fm_run_create_shadow(out, cpu, gpu);
}

const fm_backend *fm_backend_shadow(void)
{
    static fm_backend shadow = {
        .name      = "shadow",
        .packing   = FM_PACK_PANELS,
        .is_host   = 1,
        .is_usable = is_usable,
        .open      = open_host,
        .workspace = workspace,
        .fill      = fm_weights_fill,
        .create    = create,
    };
    shadow.also = fm_backend_cuda();
    return &shadow;
}
