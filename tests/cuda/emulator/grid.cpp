/* SPDX-License-Identifier: Apache-2.0 */
#include "grid.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "fibre.h"
#include "phases.h"
#include "shared.h"

enum { WARP = 32, MAX_THREADS = 1024, BARRIERS = 16 };

enum thread_state { READY, AT_BARRIER, AT_MEETING, AT_PHASE, GONE };

struct copy16 {
    void       *to;
    const void *from; /* NULL: zeros */
};

struct emu_thread {
    fm_fibre     fibre;
    thread_state state;
    int          number; /* within the block */
    uint3        index;

    int         barrier;
    const char *op; /* of the meeting it waits at */
    unsigned    mask;
    void       *brought;
    const void *phase; /* the mbarrier it waits for */

    std::vector<copy16>              open; /* not yet committed */
    std::vector<std::vector<copy16>> flying;
};

struct meeting_point {
    int arrived, expected;
};

static struct {
    const char *kernel;
    void (*body)(const void *);
    const void   *arg;
    int           n_thread;
    meeting_point barrier[BARRIERS];
    unsigned      turn; /* changes the order in which threads run */
} block;

fm_emu_place       fm_emu_here;
static emu_thread  team[MAX_THREADS];
static emu_thread *self;

void fm_emu_stop(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "emulator: %s, block (%u,%u,%u)", block.kernel ? block.kernel : "host",
            fm_emu_here.block.x, fm_emu_here.block.y, fm_emu_here.block.z);
    if (self) fprintf(stderr, ", thread (%u,%u,%u)", self->index.x, self->index.y, self->index.z);
    fputs(": ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    abort();
}

/* --- waiting ---------------------------------------------------------------- */

static void wait_as(thread_state why)
{
    emu_thread *me = self;
    me->state      = why;
    fm_fibre_yield(&me->fibre);
}

/* Counts one more at the barrier; if all have come, those who wait go on. */
static bool come_to_barrier(int id, int threads)
{
    if (id < 0 || id >= BARRIERS) fm_emu_stop("barrier %d does not exist", id);
    if (threads == 0) threads = block.n_thread;
    if (id != 0 && threads % WARP)
        fm_emu_stop("barrier %d for %d threads: not whole warps", id, threads);
    meeting_point *b = &block.barrier[id];
    if (b->arrived && b->expected != threads)
        fm_emu_stop("barrier %d for %d threads, others wait there for %d", id, threads,
                    b->expected);
    b->expected = threads;
    if (++b->arrived < threads) return false;
    b->arrived = 0;
    for (int i = 0; i < block.n_thread; i++)
        if (team[i].state == AT_BARRIER && team[i].barrier == id) team[i].state = READY;
    return true;
}

void fm_emu_barrier(int id, int threads)
{
    if (come_to_barrier(id, threads)) return;
    self->barrier = id;
    wait_as(AT_BARRIER);
}

void fm_emu_barrier_arrive(int id, int threads)
{
    (void)come_to_barrier(id, threads);
}

static bool all_here(const emu_thread *warp, unsigned mask, int n_lane)
{
    for (int l = 0; l < n_lane; l++)
        if (mask >> l & 1 && (warp[l].state != AT_MEETING || warp[l].mask != mask)) return false;
    return n_lane == WARP || mask >> n_lane == 0;
}

void fm_emu_meet(const char *op, unsigned mask, void *mine,
                 void (*work)(void *const *all, unsigned mask))
{
    const int   lane   = self->number % WARP;
    emu_thread *warp   = self - lane;
    const int   left   = block.n_thread - (self->number - lane);
    const int   n_lane = left < WARP ? left : WARP;
    if (!(mask >> lane & 1)) fm_emu_stop("%s: lane %d is not in its own mask %08x", op, lane, mask);
    self->op      = op;
    self->mask    = mask;
    self->brought = mine;
    self->state   = AT_MEETING;
    if (!all_here(warp, mask, n_lane)) {
        wait_as(AT_MEETING);
        return;
    }
    void *all[WARP] = {};
    for (int l = 0; l < n_lane; l++) {
        if (!(mask >> l & 1)) continue;
        if (strcmp(warp[l].op, op) != 0)
            fm_emu_stop("%s in one lane meets %s in another", op, warp[l].op);
        all[l] = warp[l].brought;
    }
    work(all, mask);
    for (int l = 0; l < n_lane; l++)
        if (mask >> l & 1) warp[l].state = READY;
}

void fm_emu_sleep_at(const void *mbarrier)
{
    self->phase = mbarrier;
    wait_as(AT_PHASE);
}

void fm_emu_wake(const void *mbarrier)
{
    for (int i = 0; i < block.n_thread; i++)
        if (team[i].state == AT_PHASE && team[i].phase == mbarrier) team[i].state = READY;
}

/* --- asynchronous copies ---------------------------------------------------- */

void fm_emu_copy16(void *smem, const void *gmem, bool pred)
{
    fm_emu_need_shared("cp.async", smem, 16, 16);
    if (pred && (uintptr_t)gmem % 16) fm_emu_stop("cp.async from %p: not 16-byte aligned", gmem);
    memset(smem, 0xff, 16);
    self->open.push_back({smem, pred ? gmem : NULL});
}

void fm_emu_copy_commit()
{
    self->flying.push_back(std::move(self->open));
    self->open.clear();
}

void fm_emu_copy_wait(int n_in_flight)
{
    std::vector<std::vector<copy16>> &groups = self->flying;
    size_t                            landed = 0;
    for (; groups.size() - landed > (size_t)n_in_flight; landed++)
        for (const copy16 &c : groups[landed]) {
            if (c.from)
                memcpy(c.to, c.from, 16);
            else
                memset(c.to, 0, 16);
        }
    groups.erase(groups.begin(), groups.begin() + (ptrdiff_t)landed);
}

void fm_emu_take_copies(const std::function<void(void *to, const void *from)> &take)
{
    fm_emu_copy_commit();
    for (const std::vector<copy16> &group : self->flying)
        for (const copy16 &c : group) take(c.to, c.from);
    self->flying.clear();
}

/* --- running ---------------------------------------------------------------- */

static void thread_main(void *arg)
{
    block.body(block.arg);
    ((emu_thread *)arg)->state = GONE;
}

static void prepare_thread(emu_thread *t, int number, dim3 size)
{
    const unsigned n = (unsigned)number;
    t->state         = READY;
    t->number        = number;
    t->index         = {n % size.x, n / size.x % size.y, n / size.x / size.y};
    t->open.clear();
    t->flying.clear();
    fm_fibre_prepare(&t->fibre, number, thread_main, t);
}

static void run_thread(emu_thread *t)
{
    self               = t;
    fm_emu_here.thread = t->index;
    fm_emu_here.lane   = t->number % WARP;
    fm_fibre_enter(&t->fibre);
    self = NULL;
}

/* Until every lane waits for another warp or is gone; true if any could run. */
static bool run_warp(int first)
{
    const int n    = block.n_thread - first < WARP ? block.n_thread - first : WARP;
    bool      some = false, more = true;
    while (more) {
        more                 = false;
        const bool backwards = block.turn++ & 1;
        for (int i = 0; i < n; i++) {
            emu_thread *t = &team[first + (backwards ? n - 1 - i : i)];
            if (t->state != READY) continue;
            run_thread(t);
            more = some = true;
        }
    }
    return some;
}

static void explain_deadlock()
{
    int         waiting[BARRIERS] = {}, gone = 0, meeting = 0, phase = 0;
    const char *op = NULL;
    for (int i = 0; i < block.n_thread; i++) {
        const emu_thread *t = &team[i];
        if (t->state == GONE) gone++;
        if (t->state == AT_MEETING) meeting++, op = t->op;
        if (t->state == AT_BARRIER) waiting[t->barrier]++;
        if (t->state == AT_PHASE) phase++;
    }
    char text[256] = "";
    for (int b = 0; b < BARRIERS; b++)
        if (waiting[b])
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     " %d wait at barrier %d for %d,", waiting[b], b, block.barrier[b].expected);
    if (meeting)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %d wait at %s,", meeting, op);
    if (phase)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %d wait at an mbarrier,", phase);
    fm_emu_stop("deadlock: of %d threads%s %d have returned", block.n_thread, text, gone);
}

static bool all_gone()
{
    for (int i = 0; i < block.n_thread; i++)
        if (team[i].state != GONE) return false;
    return true;
}

static void run_block(dim3 size)
{
    const int n_warp = (block.n_thread + WARP - 1) / WARP;
    memset(block.barrier, 0, sizeof block.barrier);
    fm_emu_poison_shared();
    for (int i = 0; i < block.n_thread; i++) prepare_thread(&team[i], i, size);
    for (bool some = true; some;) {
        some              = false;
        const int  rotate = (int)(block.turn * 2654435761u >> 16) % n_warp;
        const bool down   = block.turn & 2;
        for (int i = 0; i < n_warp; i++) {
            const int w = (rotate + (down ? n_warp - i : i)) % n_warp;
            some        = run_warp(w * WARP) || some;
        }
        if (!some && !all_gone()) some = fm_emu_land_next();
    }
    if (!all_gone()) explain_deadlock();
    fm_emu_need_no_bulk();
    fm_emu_check_shared();
}

void fm_emu_run(const char *kernel, const void *address, dim3 grid, dim3 size, size_t smem_bytes,
                void (*body)(const void *), const void *arg)
{
    const size_t n_thread = (size_t)size.x * size.y * size.z;
    if (block.kernel) fm_emu_stop("a kernel starts %s", kernel);
    block.kernel      = kernel;
    block.body        = body;
    block.arg         = arg;
    fm_emu_here.block = {0, 0, 0};
    if (n_thread < 1 || n_thread > MAX_THREADS) fm_emu_stop("%zu threads in a block", n_thread);
    if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535)
        fm_emu_stop("a grid of %u x %u x %u blocks", grid.x, grid.y, grid.z);
    fm_emu_take_shared(address, smem_bytes);
    block.n_thread        = (int)n_thread;
    fm_emu_here.block_dim = size;
    fm_emu_here.grid_dim  = grid;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                fm_emu_here.block = {x, y, z};
                run_block(size);
            }
    block.kernel = NULL;
}
