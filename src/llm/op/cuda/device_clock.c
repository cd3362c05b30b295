/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/cuda/device_clock.h"

#include "base/clock.h"
#include "device/cuda/device.h"
#include "llm/kernel/cuda/stamp/stamp.h"

enum { ROUNDS = 6 };

static const uint64_t SECOND = 1000000000, PATIENCE = 2000000, OFTEN = 5;

static uint64_t now(void) { return (uint64_t)(1e9 * fm_now()); }

/* 0: the device is too busy to answer soon. */
static fm_status wait_for_answer(const fm_device_clock *c, int *done)
{
    const uint64_t began = now();
    for (*done = 0; !*done && now() - began < PATIENCE;)
        FM_TRY(fm_cuda_stream_is_done(c->stream, done));
    return FM_OK;
}

static fm_status ask(fm_device_clock *c, fm_moment *best)
{
    int done = 1;
    if (c->is_asked) FM_TRY(wait_for_answer(c, &done));
    if (!done) return FM_OK;
    const uint64_t asked = now();
    FM_TRY(fm_cuda_stamp(c->stamp, c->stream));
    FM_TRY(wait_for_answer(c, &done));
    c->is_asked          = !done;
    const uint64_t known = now(), half = (known - asked) / 2;
    if (done && (!best->host || half < best->error))
        *best = (fm_moment){*c->stamp, asked + half, half};
    return FM_OK;
}

fm_status fm_device_clock_compare(fm_device_clock *c)
{
    fm_moment best = {0};
    for (int i = 0; i < ROUNDS; i++) FM_TRY(ask(c, &best));
    if (!best.host) return FM_OK;
    if (!c->first.host) c->first = best;
    c->last = best;
    return FM_OK;
}

fm_status fm_device_clock_keep(fm_device_clock *c)
{
    return now() - c->last.host < OFTEN * SECOND ? FM_OK : fm_device_clock_compare(c);
}

fm_status fm_device_clock_open(fm_device_clock *c)
{
    FM_TRY(fm_cuda_stream_create(&c->stream));
    FM_TRY(fm_cuda_alloc_pinned((void **)&c->stamp, sizeof *c->stamp, "a timestamp"));
    return fm_device_clock_compare(c);
}

void fm_device_clock_close(fm_device_clock *c)
{
    if (c->stream) fm_cuda_stream_destroy(c->stream);
    fm_cuda_free_pinned(c->stamp);
    *c = (fm_device_clock){0};
}

/* Before the clocks were compared twice, a second apart, they run alike. */
uint64_t fm_device_clock_to_host(const fm_device_clock *c, uint64_t device)
{
    const fm_moment *a = &c->first, *b = &c->last;
    double           rate = 1;
    if (b->device > a->device + SECOND)
        rate = (double)(b->host - a->host) / (double)(b->device - a->device);
    const int64_t since = (int64_t)(device - b->device);
    return b->host + (uint64_t)(int64_t)((double)since * rate);
}
