/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers and KV pages are backed by memory before a step writes to them (device/host_prefault.h).
 *
 * Step buffers: once, when the run is made.  KV pages: those of a few steps then, later as many
 * beyond the highest page that is used, by a thread that works between steps.  Pages are handed
 * out from the lowest on (kv/kv_cache.c), so that what is backed is used first. */
#include "device/host_prefault.h"
#include "llm/op/cpu/cpu_internal.h"

enum { STEPS_AHEAD = 4, LEAST_AHEAD = 64 << 20, SHARE_AHEAD = 8 };

static const double longest_s = 0.5; /* of either, at start-up */

static int part_pages(const fm_run_limits *l) { return l->lane_pages ? l->lane_pages : l->n_page; }

/* Pages of a part: what the longest steps fill, but not much of a small pool. */
static int pages_ahead(const fm_run_limits *l, size_t kv_bytes)
{
    const int    part  = part_pages(l), n_part = l->n_page / part;
    const size_t page  = kv_bytes / (size_t)l->n_page, share = kv_bytes / SHARE_AHEAD;
    const size_t room  = (share > LEAST_AHEAD ? share : LEAST_AHEAD) / (size_t)n_part / page;
    const size_t steps = (size_t)STEPS_AHEAD * (size_t)l->max_rows / (size_t)l->page_size + 1;
    const size_t most  = steps < room ? steps : room;
    return most < (size_t)part ? (int)most : part;
}

/* Where threads run on several NUMA nodes, buffers come to the node of the thread that first writes
 * them. */
static void back_buffers(const fm_run_limits *l, fm_cpu *b)
{
    if (l->team && fm_threads_nodes(l->team) > 1) return;
    fm_host_prefault(b->memory, b->memory_bytes, l->n_thread, longest_s);
}

fm_status fm__prefault(fm_run *r)
{
    fm_cpu              *b = fm__cpu(r);
    const fm_run_limits *l = &r->limits;
    back_buffers(l, b);
    if (!b->kv_bytes) return FM_OK;
    const fm_prefault_options o = {.base        = b->kv,
                                   .n_layer     = (int)(b->kv_bytes / b->kv_layer),
                                   .n_part      = l->n_page / part_pages(l),
                                   .layer_bytes = b->kv_layer,
                                   .unit_bytes  = b->kv_token * (size_t)l->page_size,
                                   .n_unit      = part_pages(l),
                                   .ahead       = pages_ahead(l, b->kv_bytes),
                                   .n_thread    = l->n_thread,
                                   .seconds     = longest_s,
                                   .team        = l->team};
    return fm_prefault_create(&b->prefault, &o);
}

/* The highest page of its part that a batch writes. */
static int highest_page(const fm_run *r)
{
    const fm_batch *batch   = r->batch;
    const int       size    = r->limits.page_size, part = part_pages(&r->limits);
    int             highest = -1;
    for (int i = 0; i < batch->n_span; i++) {
        const fm_span *s    = &batch->span[i];
        const int      end = (s->pos0 + s->n_row + size - 1) / size;
        for (int k = s->pos0 / size; s->n_row && k < end; k++)
            if (s->page[k] % part > highest) highest = s->page[k] % part;
    }
    return highest;
}

void fm__cpu_begin(fm_run *r)
{
    fm_prefault *p = fm__cpu(r)->prefault;
    if (!p) return;
    fm_prefault_pause(p);
    fm_prefault_reach(p, highest_page(r) + 1);
}

void fm__cpu_end(fm_run *r)
{
    fm_prefault *p = fm__cpu(r)->prefault;
    if (p) fm_prefault_resume(p);
}
