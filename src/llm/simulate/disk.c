/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/simulate/disk.h"

#include <math.h>
#include <stdlib.h>

static fm_status open_queue(fm__disk_queue *q, int cap)
{
    *q     = (fm__disk_queue){.cap = cap};
    q->job = calloc((size_t)cap + 1, sizeof *q->job);
    return q->job ? FM_OK : fm_fail(FM_E_OOM, "simulated files");
}

static void push(fm__disk_queue *q, const fm__disk_job *j)
{
    FM_BUG_UNLESS(q->n < q->cap);
    q->job[(q->first + q->n++) % q->cap] = *j;
}

static fm__disk_job pop(fm__disk_queue *q)
{
    const fm__disk_job j = q->job[q->first];
    q->first             = (q->first + 1) % q->cap;
    q->n--;
    return j;
}

fm_status fm__disk_open(fm__disk *d, int32_t n_page, int n_read, int n_write)
{
    FM_TRY(fm_host_books_init(&d->held, n_page));
    FM_TRY(open_queue(&d->reads, n_read));
    return open_queue(&d->writes, n_write);
}

void fm__disk_close(fm__disk *d)
{
    fm_host_books_fini(&d->held);
    free(d->reads.job);
    free(d->writes.job);
}

void fm__disk_read(fm__disk *d, fm_page_hash key, double now, fm_slot_state *slot)
{
    *slot = FM_SLOT_BUSY;
    push(&d->reads, &(fm__disk_job){.key = key, .asked = now, .slot = slot});
}

void fm__disk_write(fm__disk *d, fm_page_hash key, double now, int *free)
{
    push(&d->writes, &(fm__disk_job){.key = key, .asked = now, .free = free});
}

static void finish(fm__disk *d)
{
    d->is_busy = 0;
    if (d->now.slot) {
        *d->now.slot = FM_SLOT_READY;
        return;
    }
    ++*d->now.free;
    if (fm_host_find(&d->held, d->now.key) == FM__HOST_NONE) fm_host_take(&d->held, d->now.key);
}

static void begin(fm__disk *d)
{
    fm__disk_queue *q = d->reads.n ? &d->reads : &d->writes;
    d->now            = pop(q);
    d->ends           = fmax(d->ends, d->now.asked) + (d->now.slot ? d->read_s : d->write_s);
    d->is_busy        = 1;
}

void fm__disk_advance(fm__disk *d, double now)
{
    for (;;) {
        if (d->is_busy && d->ends > now) return;
        if (d->is_busy) finish(d);
        if (!d->reads.n && !d->writes.n) return;
        begin(d);
    }
}

double fm__disk_next(const fm__disk *d) { return d->is_busy ? d->ends : INFINITY; }
