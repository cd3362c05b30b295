/* SPDX-License-Identifier: Apache-2.0 */
/* Device collectives staged through pinned host memory. A call downloads what this rank sends,
 * waits for the stream, runs the group's collective on the host and uploads the result. The uploads
 * of one call are finished before the next writes the staging buffer, since each call begins by
 * waiting for the stream. */
#include <stdlib.h>
#include <string.h>

#include "comm/device_comm.h"
#include "device/cuda/device.h"

enum { TAG = 3 };

/* A message to another rank leaves while this one computes. */
typedef struct {
    fm_device_comm base;
    fm_staging     room;
    fm_comm_job    sent;
    char          *sending; /* pinned, grows to the longest message */
    size_t         sending_size;
} staged;

static staged *of(fm_device_comm *c)
{
    return (staged *)c;
}

static size_t sum_of(const size_t *n, int count)
{
    size_t sum = 0;
    for (int i = 0; i < count; i++) sum += n[i];
    return sum;
}

static fm_status all_gather(fm_device_comm *c, void *dst, const void *src, const size_t *bytes,
                            fm_stream s)
{
    staged      *g   = of(c);
    fm_comm     *all = c->group;
    const size_t at = sum_of(bytes, all->rank), mine = bytes[all->rank];
    const size_t total = sum_of(bytes, all->n_rank);
    if (!total) return FM_OK;
    FM_BUG_UNLESS(total <= g->room.size); /* the room was sized for the calls of this group */
    if (mine) FM_TRY(fm_cuda_download(g->room.bytes + at, src, mine, s));
    FM_TRY(fm_cuda_stream_wait(s));
    FM_TRY(fm_all_gather(all, g->room.bytes, g->room.bytes + at, bytes));
    return fm_cuda_upload(dst, g->room.bytes, total, s);
}

static fm_status all_to_all(fm_device_comm *c, const fm_device_exchange *x, fm_stream s)
{
    staged      *g    = of(c);
    const int    n    = c->group->n_rank;
    const size_t sent = sum_of(x->send_n, n), taken = sum_of(x->recv_n, n);
    char        *to = g->room.bytes, *from = to + sent;
    FM_BUG_UNLESS(sent + taken <= g->room.size);
    for (int i = 0; i < n; to += x->send_n[i++])
        if (x->send_n[i])
            FM_TRY(fm_cuda_download(to, (const char *)x->src + x->send_at[i], x->send_n[i], s));
    FM_TRY(fm_cuda_stream_wait(s));
    FM_TRY(fm_all_to_all(c->group, from, x->recv_n, g->room.bytes, x->send_n));
    for (int i = 0; i < n; from += x->recv_n[i++])
        if (x->recv_n[i])
            FM_TRY(fm_cuda_upload((char *)x->dst + x->recv_at[i], from, x->recv_n[i], s));
    return FM_OK;
}

static fm_status end_send(staged *g)
{
    return g->sent.comm ? fm_comm_wait(&g->sent) : FM_OK;
}

static fm_status make_sending(staged *g, size_t bytes)
{
    if (bytes <= g->sending_size) return FM_OK;
    fm_cuda_free_pinned(g->sending);
    g->sending      = NULL;
    g->sending_size = 0;
    FM_TRY(fm_cuda_alloc_pinned((void **)&g->sending, bytes, "a message to another rank"));
    g->sending_size = bytes;
    return FM_OK;
}

static fm_status send(fm_device_comm *c, const void *src, size_t bytes, int to, fm_stream s)
{
    staged *g = of(c);
    FM_TRY(end_send(g));
    FM_TRY(make_sending(g, bytes));
    FM_TRY(fm_cuda_download(g->sending, src, bytes, s));
    FM_TRY(fm_cuda_stream_wait(s));
    g->sent = (fm_comm_job){0};
    return fm_comm_start(c->group, &g->sent, fm_call_send(g->sending, bytes, to, TAG));
}

static fm_status recv(fm_device_comm *c, void *dst, size_t bytes, int from, fm_stream s)
{
    staged *g = of(c);
    FM_BUG_UNLESS(bytes <= g->room.size);
    FM_TRY(fm_cuda_stream_wait(s));
    FM_TRY(fm_recv(c->group, g->room.bytes, bytes, from, TAG));
    return fm_cuda_upload(dst, g->room.bytes, bytes, s);
}

static fm_status broadcast(fm_device_comm *c, void *buf, size_t bytes, int root, fm_stream s)
{
    staged   *g       = of(c);
    const int is_root = c->group->rank == root;
    FM_BUG_UNLESS(bytes <= g->room.size);
    if (is_root) FM_TRY(fm_cuda_download(g->room.bytes, buf, bytes, s));
    FM_TRY(fm_cuda_stream_wait(s));
    FM_TRY(fm_broadcast(c->group, g->room.bytes, bytes, root));
    return is_root ? FM_OK : fm_cuda_upload(buf, g->room.bytes, bytes, s);
}

/* A group that failed has said so to the call that met it. */
static fm_status check(fm_device_comm *c)
{
    (void)c;
    return FM_OK;
}

/* Nothing waits on the device: the host's group has time limits of its own. */
static void abort_group(fm_device_comm *c, const char *why)
{
    (void)why;
    c->group->is_broken = 1;
}

static void close_group(fm_device_comm *c)
{
    staged *g = of(c);
    if (g->sent.comm && !c->group->is_broken) (void)end_send(g);
    fm_cuda_free_pinned(g->sending);
    free(g);
}

static const fm_device_comm_ops staged_ops = {.name       = "staged",
                                              .all_gather = all_gather,
                                              .all_to_all = all_to_all,
                                              .send       = send,
                                              .recv       = recv,
                                              .broadcast  = broadcast,
                                              .check      = check,
                                              .abort      = abort_group,
                                              .close      = close_group};

fm_status fm_device_comm_open_staged(fm_device_comm **out, fm_comm *group, fm_staging room)
{
    staged *g = calloc(1, sizeof *g);
    if (!g) return fm_fail(FM_E_OOM, "a group of ranks");
    *g   = (staged){.base = {&staged_ops, group}, .room = room};
    *out = &g->base;
    return FM_OK;
}
