/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/backend.h"

#include <stdio.h>
#include <string.h>

#include "device/host.h"
#include "llm/load/weights_fill.h"

/* --- the CPU -------------------------------------------------------------- */

static fm_status always(void)
{
    return FM_OK;
}

static fm_status open_cpu(const fm_backend_options *o, fm_backend_memory *out)
{
    (void)o;
    *out = (fm_backend_memory){.total     = fm_host_total(),
                               .available = fm_host_available(),
                               .where     = "in main memory"};
    return FM_OK;
}


static fm_status create_cpu(fm_run **out, const fm_weights *w, const fm_run_limits *lim,
                            fm_ranks ranks, const fm_backend_options *o)
{
    (void)o;
    return fm_run_create_cpu(out, w, lim, ranks);
}

const fm_backend fm_backend_cpu = {
    .name      = "cpu",
    .packing   = FM_PACK_PANELS,
    .is_host   = 1,
    .is_usable = always,
    .open      = open_cpu,
    .workspace = fm_run_cpu_workspace,
    .fill      = fm_weights_fill,
    .create    = create_cpu,
};

/* --- choosing ------------------------------------------------------------- */

static fm_status find_gpu(fm_dtype act)
{
    const fm_backend *cuda = fm_backend_cuda();
    if (!cuda)
        return fm_fail(FM_E_NOSUP,
                       "this fathom was built without CUDA and computes on the CPU alone; to use a "
                       "GPU, build it on a machine that has nvcc of CUDA 13");
    if (act != FM_BF16) return fm_fail(FM_E_NOSUP, "the GPU computes in bfloat16");
    return cuda->is_usable();
}

static fm_status need_gpu(const char *flag, fm_dtype act)
{
    char            why[400];
    const fm_status rc = find_gpu(act);
    if (rc == FM_OK) return FM_OK;
    snprintf(why, sizeof why, "%s", fm_why());
    return fm_fail(rc, "%s: %s", flag, why);
}

fm_status fm_backend_suits_gpu(fm_dtype act, int n_rank)
{
    FM_TRY(find_gpu(act));
    const int n = fm_backend_cuda()->n_device();
    if (n_rank <= n) return FM_OK;
    return fm_fail(FM_E_DEVICE, "%d ranks on this host, %d GPUs: only --device cuda shares one",
                   n_rank, n);
}

fm_status fm_backend_find(const fm_backend **out, const char *word, fm_dtype act, int has_gpu,
                          int shadow)
{
    const int is_cuda = !strcmp(word, "cuda"), is_auto = !strcmp(word, "auto");
    if (!is_cuda && !is_auto && strcmp(word, "cpu"))
        return fm_fail(FM_E_ARG, "--device %s is none of auto, cpu, cuda", word);
    if (shadow) FM_TRY(need_gpu("--shadow", act));
    else if (is_cuda) FM_TRY(need_gpu("--device cuda", act));
    if (shadow) *out = fm_backend_shadow();
    else if (is_cuda || (is_auto && has_gpu)) *out = fm_backend_cuda();
    else *out = &fm_backend_cpu;
    return FM_OK;
}
