/* SPDX-License-Identifier: Apache-2.0 */
/* Messages by MPI.  A build without MPI has mpi_none.c in place of mpi_wire.c. */
#ifndef FM_COMM_MPI_MPI_WIRE_H
#define FM_COMM_MPI_MPI_WIRE_H

#include "comm/p2p/p2p.h"

/* Not started by an MPI launcher, or as one rank: *out stays NULL and MPI is
 * not touched.  One wire per process. */
fm_status fm__mpi_open(fm_wire **out, double timeout_s, int *rank, int *n_rank);
void      fm__mpi_close(fm_wire *w); /* all ranks, nothing in flight; NULL is fine */

/* "Open MPI v4.1.4", "MPICH Version: 4.0.2"; "" in a build without MPI.  MPI need not run. */
void fm__mpi_version(char *out, size_t size);

/* How many ranks the launcher started, as its variables tell; 1: no launcher;
 * 0: a launcher that does not say. */
int fm__launched_ranks(void);

#endif
