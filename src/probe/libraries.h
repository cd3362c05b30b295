/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of the libraries that carry data between ranks and GPUs, asked of the libraries
 * themselves: a build needs nothing of them.  Open MPI names its own (fm_checkup.mpi). */
#ifndef FM_PROBE_LIBRARIES_H
#define FM_PROBE_LIBRARIES_H

#include <stddef.h>

/* "NCCL=2.21.5\nCUDA driver=12.4\nUCX=1.13.1\n"; a library that is not there is not listed.  UCX is
 * listed where MPI has loaded it: one that is installed and not used says nothing. */
void fm_libraries_list(char *out, size_t size);

#endif
