/* SPDX-License-Identifier: Apache-2.0 */
/* Were we started by mpirun or srun?  Only launchers' own variables can tell
 * without starting MPI, which costs a quarter of a second. */
#include <stdlib.h>

#include "comm/mpi/mpi_wire.h"
#include "comm/world.h"

static int number(const char *name)
{
    const char *text = getenv(name);
    const long  n    = text ? strtol(text, NULL, 10) : 0;
    return n > 0 && n < 1 << 20 ? (int)n : 0;
}

/* The variable in which the launcher says which rank this is, or NULL. */
static const char *rank_variable(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (getenv(name[i])) return name[i];
    return NULL;
}

int fm_world_launched_as(void)
{
    const char *name = rank_variable();
    return name ? number(name) : 0;
}

int fm_world_is_launched(void) { return rank_variable() != NULL; }

int fm__launched_ranks(void)
{
    int n = number("OMPI_COMM_WORLD_SIZE"); /* Open MPI's mpirun */
    if (!n) n = number("PMI_SIZE");         /* MPICH's mpirun, srun --mpi=pmi2 */
    if (n) return n;
    if (!getenv("PMIX_RANK")) return 1;
    return number("SLURM_STEP_NUM_TASKS"); /* srun --mpi=pmix */
}
