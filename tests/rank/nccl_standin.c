/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's calls over MPI, for emulated GPUs, whose memory is the host's.  As
 * awkward as the real one may be: what joins or ends a group is in progress
 * until it is asked for again, and a send returns before it has arrived.  Calls
 * in a stream that is recorded run when the recording does.  FM_STANDIN_FAILS:
 * "join", no group can be made; "long", no message of more than LONG bytes. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "comm/nccl/nccl_library.h"

enum { MAX_RANKS = 8, MAX_CALLS = 64, INVALID = 4, JOIN_TAG = 1, FIRST_TAG = 16, LONG = 4096 };

struct fm__nccl_group {
    int rank, n_rank, tag, is_late;
    int world[MAX_RANKS];
};

typedef enum { SEND, RECV, COPY } call_kind;

typedef struct {
    call_kind     kind;
    int           peer;
    void         *buf;
    const void   *from; /* COPY */
    size_t        bytes;
    fm__nccl_comm comm;
} call;

/* What one call, or a group of calls, puts into the stream. */
typedef struct {
    int  n;
    call call[MAX_CALLS];
} batch;

static MPI_Comm all = MPI_COMM_NULL;
static batch    queued;
static int      depth;

static int fails_at(const char *what)
{
    const char *at = getenv("FM_STANDIN_FAILS");
    return at && !strcmp(at, what);
}

/* --- groups ---------------------------------------------------------------- */

typedef struct {
    int root, number;
} id_text;

static int get_id(fm__nccl_id *id)
{
    static int number;
    id_text    t = {0, number++};
    MPI_Comm_rank(MPI_COMM_WORLD, &t.root);
    memcpy(id->bytes, &t, sizeof t);
    return FM__NCCL_OK;
}

/* The first rank learns who the others are, and tells them. */
static void introduce(fm__nccl_comm c, const id_text *t)
{
    int me[2] = {c->rank, 0};
    MPI_Comm_rank(all, &me[1]);
    c->world[c->rank] = me[1];
    if (c->rank) {
        MPI_Send(me, 2, MPI_INT, t->root, JOIN_TAG, all);
        MPI_Recv(c->world, MAX_RANKS, MPI_INT, t->root, JOIN_TAG + 1, all, MPI_STATUS_IGNORE);
        return;
    }
    for (int i = 1; i < c->n_rank; i++) {
        MPI_Recv(me, 2, MPI_INT, MPI_ANY_SOURCE, JOIN_TAG, all, MPI_STATUS_IGNORE);
        c->world[me[0]] = me[1];
    }
    for (int i = 1; i < c->n_rank; i++)
        MPI_Send(c->world, MAX_RANKS, MPI_INT, c->world[i], JOIN_TAG + 1, all);
}

static int init(fm__nccl_comm *out, int n, fm__nccl_id id, int rank, fm__nccl_config *config)
{
    id_text t;
    if (n > MAX_RANKS || config->magic != FM__NCCL_MAGIC || config->size != sizeof *config ||
        config->blocking || fails_at("join"))
        return INVALID;
    memcpy(&t, id.bytes, sizeof t);
    if (all == MPI_COMM_NULL) MPI_Comm_dup(MPI_COMM_WORLD, &all); /* the first group is all ranks */
    *out         = calloc(1, sizeof **out);
    (*out)->rank = rank, (*out)->n_rank = n, (*out)->is_late = 1;
    (*out)->tag = FIRST_TAG + t.root * 1000 + t.number;
    introduce(*out, &t);
    return FM__NCCL_IN_PROGRESS;
}

static int async_error(fm__nccl_comm c, int *state)
{
    *state     = c->is_late ? FM__NCCL_IN_PROGRESS : FM__NCCL_OK;
    c->is_late = 0;
    return FM__NCCL_OK;
}

static int finalize(fm__nccl_comm c)
{
    c->is_late = 1;
    return FM__NCCL_IN_PROGRESS;
}

static int destroy(fm__nccl_comm c)
{
    free(c);
    return FM__NCCL_OK;
}

/* --- messages -------------------------------------------------------------- */

/* Messages on their way. */
typedef struct {
    char       *copy;
    MPI_Request request;
} sent;

static sent *under_way;
static int   n_under_way;

static void free_arrived(void)
{
    int n = 0;
    for (int i = 0; i < n_under_way; i++) {
        int done = 0;
        MPI_Test(&under_way[i].request, &done, MPI_STATUS_IGNORE);
        if (done)
            free(under_way[i].copy);
        else
            under_way[n++] = under_way[i];
    }
    n_under_way = n;
}

/* Copied, so that the caller's buffer is free at once. */
static void post(const call *c)
{
    free_arrived();
    under_way = realloc(under_way, ((size_t)n_under_way + 1) * sizeof *under_way);
    sent *new = &under_way[n_under_way++];
    new->copy = malloc(c->bytes);
    memcpy(new->copy, c->buf, c->bytes);
    MPI_Isend(new->copy, (int)c->bytes, MPI_BYTE, c->comm->world[c->peer], c->comm->tag, all,
              &new->request);
}

static void take(const call *c)
{
    MPI_Recv(c->buf, (int)c->bytes, MPI_BYTE, c->comm->world[c->peer], c->comm->tag, all,
             MPI_STATUS_IGNORE);
}

static void run_batch(const void *arg)
{
    const batch *b = arg;
    for (int i = 0; i < b->n; i++)
        if (b->call[i].kind == COPY) memcpy(b->call[i].buf, b->call[i].from, b->call[i].bytes);
    for (int i = 0; i < b->n; i++)
        if (b->call[i].kind == SEND) post(&b->call[i]);
    for (int i = 0; i < b->n; i++)
        if (b->call[i].kind == RECV) take(&b->call[i]);
}

static int flush(void)
{
    fm__nccl_comm c = queued.n ? queued.call[0].comm : NULL;
    if (!c) return FM__NCCL_OK;
    fm_emu_call(run_batch, &queued, sizeof queued);
    queued.n   = 0;
    c->is_late = 1;
    return FM__NCCL_IN_PROGRESS;
}

static int put(call c)
{
    if (queued.n == MAX_CALLS || (c.bytes > LONG && fails_at("long"))) return INVALID;
    queued.call[queued.n++] = c;
    return depth ? FM__NCCL_OK : flush();
}

static int group_start(void)
{
    depth++;
    return FM__NCCL_OK;
}

static int group_end(void) { return --depth ? FM__NCCL_OK : flush(); }

static int send(const void *buf, size_t n, int type, int to, fm__nccl_comm c, fm_stream s)
{
    (void)s;
    return type == FM__NCCL_BYTE ? put((call){SEND, to, (void *)buf, NULL, n, c}) : INVALID;
}

static int recv(void *buf, size_t n, int type, int from, fm__nccl_comm c, fm_stream s)
{
    (void)s;
    return type == FM__NCCL_BYTE ? put((call){RECV, from, buf, NULL, n, c}) : INVALID;
}

static int broadcast(const void *from, void *to, size_t n, int type, int root, fm__nccl_comm c,
                     fm_stream s)
{
    if (c->rank != root) return recv(to, n, type, root, c, s);
    group_start();
    if (from != to && put((call){COPY, root, to, from, n, c}) == INVALID) return INVALID;
    for (int i = 0; i < c->n_rank; i++)
        if (i != root && send(from, n, type, i, c, s) == INVALID) return INVALID;
    return group_end();
}

static int all_gather(const void *from, void *to, size_t n, int type, fm__nccl_comm c, fm_stream s)
{
    group_start();
    for (int i = 0; i < c->n_rank; i++) {
        char     *at = (char *)to + (size_t)i * n;
        const int rc = broadcast(i == c->rank ? from : at, at, n, type, i, c, s);
        if (rc == INVALID) return rc;
    }
    return group_end();
}

static const char *error_string(int rc) { return rc == INVALID ? "invalid argument" : "no error"; }

fm_status fm__nccl_library(const fm__nccl_calls **out)
{
    static const fm__nccl_calls calls = {.GetUniqueId        = get_id,
                                         .CommInitRankConfig = init,
                                         .CommGetAsyncError  = async_error,
                                         .CommFinalize       = finalize,
                                         .CommDestroy        = destroy,
                                         .CommAbort          = destroy,
                                         .AllGather          = all_gather,
                                         .Broadcast          = broadcast,
                                         .Send               = send,
                                         .Recv               = recv,
                                         .GroupStart         = group_start,
                                         .GroupEnd           = group_end,
                                         .GetErrorString     = error_string};
    *out                              = &calls;
    return FM_OK;
}
