/* SPDX-License-Identifier: Apache-2.0 */
/* Only sends, receives and tests: MPI's collectives can neither time out nor
 * promise an order of summation. */
#include "comm/mpi/mpi_wire.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc_guard.h"
#include "base/clock.h"

typedef struct {
    fm_wire  wire; /* first: an fm_wire is what others see */
    MPI_Comm comm;
    int      is_ours; /* this file called MPI_Init_thread */
} mpi_wire;

_Static_assert(sizeof(MPI_Request) <= sizeof(fm_wire_request), "a request fits");

static fm_status check(int code, const char *what)
{
    if (code == MPI_SUCCESS) return FM_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int  n                          = 0;
    MPI_Error_string(code, text, &n);
    return fm_fail(FM_E_COMM, "%s: %s", what, text);
}

#define FM_MPI(call) FM_TRY(check(call, #call))

static fm_status post_send(fm_wire *w, const void *p, size_t bytes, int to, int tag,
                           fm_wire_request *r)
{
    const MPI_Comm comm   = ((mpi_wire *)w)->comm;
    const int      paused = fm_alloc_guard_pause(); /* MPI allocates as it likes */
    const int code = MPI_Isend(p, (int)bytes, MPI_BYTE, to, tag, comm, (MPI_Request *)r);
    fm_alloc_guard_resume(paused);
    return check(code, "MPI_Isend");
}

static fm_status post_recv(fm_wire *w, void *p, size_t bytes, int from, int tag, fm_wire_request *r)
{
    const MPI_Comm comm   = ((mpi_wire *)w)->comm;
    const int      paused = fm_alloc_guard_pause();
    const int code = MPI_Irecv(p, (int)bytes, MPI_BYTE, from, tag, comm, (MPI_Request *)r);
    fm_alloc_guard_resume(paused);
    return check(code, "MPI_Irecv");
}

static fm_status test_message(fm_wire *w, fm_wire_request *r, int *done, size_t *bytes)
{
    (void)w;
    MPI_Status status;
    int        n = 0;
    const int paused = fm_alloc_guard_pause();
    const int code   = MPI_Test((MPI_Request *)r, done, &status);
    fm_alloc_guard_resume(paused);
    FM_TRY(check(code, "MPI_Test"));
    if (*done && MPI_Get_count(&status, MPI_BYTE, &n) == MPI_SUCCESS && n > 0) *bytes = (size_t)n;
    return FM_OK;
}

static const fm_wire_ops ops = {post_send, post_recv, test_message};

static fm_status wait_for(MPI_Request *r, double timeout_s, const char *what)
{
    const double until = fm_now() + timeout_s;
    for (int done = 0; !done;) {
        FM_TRY(check(MPI_Test(r, &done, MPI_STATUS_IGNORE), what));
        if (!done && fm_now() > until)
            return fm_fail(FM_E_COMM, "%s: not all ranks answered within %.0f s", what, timeout_s);
        if (!done) sched_yield();
    }
    return FM_OK;
}

/* A communicator of our own, so that messages of the host program never match
 * ours. */
static fm_status begin(mpi_wire *m, double timeout_s)
{
    int         given = 0, was_running = 0, has_tag = 0, *max_tag = NULL;
    MPI_Request r;
    FM_MPI(MPI_Initialized(&was_running));
    if (!was_running)
        FM_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given));
    else
        FM_MPI(MPI_Query_thread(&given));
    if (given < MPI_THREAD_SERIALIZED)
        return fm_fail(FM_E_NOSUP, "this MPI allows calls from its first thread only");
    m->is_ours = !was_running;
    FM_MPI(MPI_Comm_idup(MPI_COMM_WORLD, &m->comm, &r));
    FM_TRY(wait_for(&r, timeout_s, "start of MPI"));
    FM_MPI(MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN));
    FM_MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &max_tag, &has_tag));
    m->wire.max_tag = has_tag ? *max_tag : 32767;
    return FM_OK;
}

static fm_status size_up(const mpi_wire *m, int launched, int *rank, int *n_rank)
{
    FM_MPI(MPI_Comm_rank(m->comm, rank));
    FM_MPI(MPI_Comm_size(m->comm, n_rank));
    if (launched && *n_rank != launched)
        return fm_fail(FM_E_COMM,
                       "started as %d ranks, but MPI knows %d: the launcher and the library "
                       "belong to different MPI installations",
                       launched, *n_rank);
    return FM_OK;
}

fm_status fm__mpi_open(fm_wire **out, double timeout_s, int *rank, int *n_rank)
{
    const int launched = fm__launched_ranks();
    *out               = NULL;
    *rank              = 0;
    *n_rank            = 1;
    if (launched == 1) return FM_OK;
    mpi_wire *m = calloc(1, sizeof *m);
    if (!m) return fm_fail(FM_E_OOM, "MPI");
    m->wire.ops  = &ops;
    fm_status rc = begin(m, timeout_s);
    if (rc == FM_OK) rc = size_up(m, launched, rank, n_rank);
    if (rc != FM_OK) {
        free(m);
        return rc;
    }
    *out = &m->wire;
    return FM_OK;
}

void fm__mpi_close(fm_wire *w)
{
    if (!w) return;
    mpi_wire *m = (mpi_wire *)w;
    MPI_Comm_free(&m->comm);
    if (m->is_ours) MPI_Finalize();
    free(m);
}

/* The first line, up to a comma: the rest says who packed it. */
void fm__mpi_version(char *out, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int  n                                    = 0;
    if (MPI_Get_library_version(text, &n) != MPI_SUCCESS) text[0] = 0;
    for (char *c = text; (c = strchr(c, '\t'));) *c = ' '; /* of MPICH */
    snprintf(out, size, "%.*s", (int)strcspn(text, ",\n"), text);
}
