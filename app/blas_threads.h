/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS starts a thread for each core when it is loaded, before main, and each takes 128 MiB of
 * addresses.  Where `ulimit -v` or `-d` has no room for them, they never become ready, and the end
 * of the process waits for them without end.  fathom computes with one. */
#ifndef FM_APP_BLAS_THREADS_H
#define FM_APP_BLAS_THREADS_H

/* To be called first.  Under such a limit this program is executed once more, with OpenBLAS told
 * to start none; OPENBLAS_NUM_THREADS of the user is left alone.  Nothing changes for programs
 * that this one starts. */
void fm_blas_threads_avoid(char **argv);

#endif
