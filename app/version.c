/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>

#include "base/cpu.h"
#include "comm/world.h"
#include "commands.h"
#include "fathom/fathom.h"
#include "llm/kernel/gemm/gemm.h"

#ifndef FM_HAVE_MPI
#define FM_HAVE_MPI 0
#endif
#ifndef FM_HAVE_CUDA
#define FM_HAVE_CUDA 0
#endif

static void print_compiled(void)
{
    size_t         count;
    const fm_gemm *v = fm_gemm_all(&count);
    printf("  ISA compiled");
    for (size_t n = count; n--;) /* a level may have two variants */
        if (n + 1 == count || v[n].isa != v[n + 1].isa) printf(" %s", fm_isa_name(v[n].isa));
}

/* Which MPI: the launcher must be of the same one. */
static void print_mpi(void)
{
    char name[64] = "";
    fm_world_library(name, sizeof name);
    printf("  MPI          %s\n", *name ? name : FM_HAVE_MPI ? "yes" : "no");
}

void fm_print_version(void)
{
    printf("fathom %s\n", FM_VERSION);
    print_compiled();
    printf("\n  ISA detected");
    for (int i = FM_ISA_REF; i <= FM_ISA_AMX; i++)
        if (fm_cpu_detects((fm_isa)i)) printf(" %s", fm_isa_name((fm_isa)i));
    printf("\n  ISA in use   %s\n", fm_isa_name(fm_gemm_pick()->isa));
    print_mpi();
    printf("  CUDA         %s\n", FM_HAVE_CUDA ? "yes" : "no");
}
