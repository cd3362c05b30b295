/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "self_launch.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/world.h"

enum { OWN_WORDS = 6 }; /* mpirun -np N --bind-to none PROGRAM */

static int64_t ranks_of(const fm_options *o)
{
    return o->tp_size * o->pp_size * (o->enable_dp_attention ? 1 : o->dp_size);
}

static int usable_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The words this process was started with, each with its NUL. */
static fm_status read_words(fm_str *out)
{
    char   block[4096];
    size_t n;
    FILE  *f = fopen("/proc/self/cmdline", "r");
    if (!f) return fm_fail(FM_E_IO, "/proc/self/cmdline cannot be read");
    while ((n = fread(block, 1, sizeof block, f)) > 0) fm_str_add(out, block, n);
    fclose(f);
    return FM_OK;
}

/* Open MPI's mpirun refuses to be root's, and more ranks than cores, where one
 * does not insist. */
static void insist(void)
{
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 0);
}

/* Ranks that may use the same CPUs divide them among themselves: no binding. */
static fm_status become_mpirun(int64_t n_rank)
{
    char   program[PATH_MAX] = "", count[24];
    fm_str words             = {0};
    if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0)
        return fm_fail(FM_E_IO, "/proc/self/exe cannot be read");
    FM_TRY(read_words(&words));
    snprintf(count, sizeof count, "%lld", (long long)n_rank);
    char **argv = calloc(words.len + OWN_WORDS + 1, sizeof *argv);
    if (!argv) return fm_fail(FM_E_OOM, "command line");
    char *own[OWN_WORDS] = {FM_MPIRUN, "-np", count, "--bind-to", "none", program};
    memcpy(argv, own, sizeof own);
    int n = OWN_WORDS;
    for (char *w = words.text + strlen(words.text) + 1; w < words.text + words.len;
         w += strlen(w) + 1)
        argv[n++] = w;
    insist();
    execvp(argv[0], argv);
    free(argv); /* there is no mpirun: the engine says how it would be called */
    fm_str_fini(&words);
    return FM_OK;
}

/* Of a script that starts one process on each node, or starts them without a launcher of MPI. */
static fm_status explain_nodes(int64_t n_rank, int n_node)
{
    const long long per_node     = (n_rank + n_node - 1) / n_node;
    char            instead[80] = "";
    if (per_node > 1)
        snprintf(instead, sizeof instead,
                 ". Where the script says ppr:1:node, write ppr:%lld:node", per_node);
    return fm_fail(
        FM_E_ARG,
        "--nnodes %d: the launcher starts every rank, not one process per node. Start "
        "it once for all nodes, as\n  mpirun -np %lld --map-by ppr:%lld:node fathom ...\n"
        "(Slurm: srun --ntasks-per-node=%lld)%s",
        n_node, (long long)n_rank, per_node, per_node, instead);
}

/* More ranks than CPUs are slow, and more often a mistake than a wish: they are not started unasked. */
static fm_status explain_cpus(int64_t n_rank, int n_cpu)
{
    return fm_fail(
        FM_E_ARG,
        "these sizes need %lld ranks, and this process may use %d CPU%s. On several hosts a "
        "launcher starts them (docs/cluster.md); here, slowly:\n"
        "  mpirun -np %lld --oversubscribe --bind-to none fathom ...",
        (long long)n_rank, n_cpu, n_cpu == 1 ? "" : "s", (long long)n_rank);
}

fm_status fm_self_launch(const fm_options *o, const fm_args *a)
{
    const int64_t n_rank = ranks_of(o);
    if (n_rank <= 1 || fm_world_is_launched()) return FM_OK;
    if (a->n_node > 1) return explain_nodes(n_rank, a->n_node);
    if (o->world.no_launch) return FM_OK; /* the engine asks for the launcher */
    if (n_rank > usable_cpus()) return explain_cpus(n_rank, usable_cpus());
    return become_mpirun(n_rank);
}
