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

enum { WARP = 32, MAX_THREADS = 1024, MAX_WARPS = MAX_THREADS / WARP, BARRIERS = 16 };

struct small_copy {
    void       *to;
    const void *from; /* NULL: zeros */
    size_t      bytes;
};

struct emu_thread {
    fm_fibre fibre;
    int      number; /* within the block */
    int      warp, lane;
    uint3    index;

    const void *phase; /* the mbarrier it waits for */

    std::vector<small_copy> copies; /* that have not landed, in order */
    std::vector<size_t>     groups; /* where each group of them ends; those behind are not yet committed */
};

/* Threads of a block, a bit each. */
struct thread_set {
    unsigned lanes[MAX_WARPS];

    void add(const emu_thread *t) { lanes[t->warp] |= 1u << t->lane; }
    void remove(const emu_thread *t) { lanes[t->warp] &= ~(1u << t->lane); }
    int  count() const
    {
        int n = 0;
        for (unsigned l : lanes) n += __builtin_popcount(l);
        return n;
    }
};

/* What the lanes of a warp say of the meeting they wait at. */
struct warp_meeting {
    const char *op[WARP];
    unsigned    mask[WARP];
    void       *brought[WARP];
};

struct meeting_point {
    int        arrived, expected;
    thread_set waiting;
};

static struct {
    const char *kernel;
    void (*body)(const void *);
    const void   *arg;
    int           n_thread;
    int           n_warp;
    meeting_point barrier[BARRIERS];
    thread_set    ready, meeting, at_phase, gone; /* one that waits at a barrier is in its set */
    unsigned      turn; /* changes the order in which threads run */
    bool          down; /* the order of lanes in the pass over a warp */
} block;

fm_emu_place        fm_emu_here;
static emu_thread   team[MAX_THREADS];
static emu_thread  *self;
static warp_meeting met[MAX_WARPS];

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

/* The next ready lane of a warp from `at` on, upwards or downwards; -1: none. */
static int next_ready(int warp, int at, bool down)
{
    const unsigned ready = block.ready.lanes[warp];
    if (at < 0 || at >= WARP) return -1;
    const unsigned left = down ? ready & ((2u << at) - 1) : ready >> at << at;
    return !left ? -1 : down ? 31 - __builtin_clz(left) : __builtin_ctz(left);
}

static inline void become(emu_thread *t)
{
    self               = t;
    fm_emu_here.thread = t->index;
    fm_emu_here.lane   = t->lane;
}

/* The next lane of the pass over this warp goes on at once.  Lanes mostly stand at the same place,
 * so that returns are predicted, which they are not by way of run_warp(). */
static inline __attribute__((always_inline)) void wait_in(thread_set *s)
{
    emu_thread *const me = self;
    s->add(me);
    block.ready.remove(me);
    const int next = next_ready(me->warp, me->lane + (block.down ? -1 : 1), block.down);
    if (next >= 0) {
        emu_thread *const other = me - me->lane + next;
        become(other);
        if (fm_fibre_hand_over(&me->fibre, &other->fibre)) return;
        become(me);
    }
    fm_fibre_yield(&me->fibre);
}

static void wake(thread_set *s)
{
    for (int w = 0; w < block.n_warp; w++) {
        block.ready.lanes[w] |= s->lanes[w];
        s->lanes[w] = 0;
    }
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
    wake(&b->waiting);
    return true;
}

void fm_emu_barrier(int id, int threads)
{
    if (come_to_barrier(id, threads)) return;
    wait_in(&block.barrier[id].waiting);
}

void fm_emu_barrier_arrive(int id, int threads)
{
    (void)come_to_barrier(id, threads);
}

/* Lanes of `mask` wait with that mask, or are the caller. */
static bool agree(const warp_meeting *m, unsigned mask)
{
    for (unsigned left = mask; left; left &= left - 1)
        if (m->mask[__builtin_ctz(left)] != mask) return false;
    return true;
}

static inline void need_one_op(const warp_meeting *m, const char *op, unsigned mask)
{
    for (unsigned left = mask; left; left &= left - 1) {
        const char *other = m->op[__builtin_ctz(left)];
        if (other != op && strcmp(other, op) != 0) fm_emu_stop("%s in one lane meets %s in another", op, other);
    }
}

static __attribute__((noinline)) void work_on(const warp_meeting *m, unsigned mask,
                                              void (*work)(void *const *all, unsigned mask))
{
    void *all[WARP];
    for (int l = 0; l < WARP; l++) all[l] = mask >> l & 1 ? m->brought[l] : NULL;
    work(all, mask);
}

void fm_emu_meet(const char *op, unsigned mask, void *mine,
                 void (*work)(void *const *all, unsigned mask))
{
    const int      lane = self->lane, w = self->warp;
    warp_meeting  *m    = &met[w];
    const unsigned here = block.meeting.lanes[w] | 1u << lane;
    if (!(mask >> lane & 1)) fm_emu_stop("%s: lane %d is not in its own mask %08x", op, lane, mask);
    m->op[lane]      = op;
    m->mask[lane]    = mask;
    m->brought[lane] = mine;
    if ((here & mask) != mask || !agree(m, mask)) {
        wait_in(&block.meeting);
        return;
    }
    need_one_op(m, op, mask);
    work_on(m, mask, work);
    block.meeting.lanes[w] &= ~mask;
    block.ready.lanes[w] |= mask;
}

void fm_emu_sleep_at(const void *mbarrier)
{
    self->phase = mbarrier;
    wait_in(&block.at_phase);
}

void fm_emu_wake(const void *mbarrier)
{
    for (int w = 0; w < block.n_warp; w++)
        for (unsigned left = block.at_phase.lanes[w]; left; left &= left - 1) {
            const emu_thread *t = &team[w * WARP + __builtin_ctz(left)];
            if (t->phase != mbarrier) continue;
            block.at_phase.remove(t);
            block.ready.add(t);
        }
}

/* --- asynchronous copies ---------------------------------------------------- */

void fm_emu_copy(void *smem, const void *gmem, size_t bytes, bool pred)
{
    fm_emu_need_shared("cp.async", smem, bytes, bytes);
    if (pred && (uintptr_t)gmem % bytes)
        fm_emu_stop("cp.async from %p: not %zu-byte aligned", gmem, bytes);
    memset(smem, 0xff, bytes);
    self->copies.push_back({smem, pred ? gmem : NULL, bytes});
}

void fm_emu_copy_commit()
{
    self->groups.push_back(self->copies.size());
}

static void land(const small_copy &c)
{
    if (c.from)
        memcpy(c.to, c.from, c.bytes);
    else
        memset(c.to, 0, c.bytes);
}

void fm_emu_copy_wait(int n_in_flight)
{
    std::vector<size_t> &groups = self->groups;
    if (groups.size() <= (size_t)n_in_flight) return;
    const size_t n_landed = groups.size() - (size_t)n_in_flight, n_copy = groups[n_landed - 1];
    for (size_t i = 0; i < n_copy; i++) land(self->copies[i]);
    self->copies.erase(self->copies.begin(), self->copies.begin() + (ptrdiff_t)n_copy);
    groups.erase(groups.begin(), groups.begin() + (ptrdiff_t)n_landed);
    for (size_t &end : groups) end -= n_copy;
}

void fm_emu_take_copies(const std::function<void(void *to, const void *from, size_t bytes)> &take)
{
    for (const small_copy &c : self->copies) take(c.to, c.from, c.bytes);
    self->copies.clear();
    self->groups.clear();
}

/* --- running ---------------------------------------------------------------- */

static void thread_main(void *arg)
{
    const emu_thread *me = (const emu_thread *)arg;
    block.body(block.arg);
    block.ready.remove(me);
    block.gone.add(me);
}

static void place_threads(dim3 size)
{
    for (int i = 0; i < block.n_thread; i++) {
        const unsigned n = (unsigned)i;
        team[i].number   = i;
        team[i].warp     = i / WARP;
        team[i].lane     = i % WARP;
        team[i].index    = {n % size.x, n / size.x % size.y, n / size.x / size.y};
    }
}

static void prepare_thread(emu_thread *t)
{
    block.ready.add(t);
    t->copies.clear();
    t->groups.clear();
    fm_fibre_prepare(&t->fibre, t->number, thread_main, t);
}

/* Until every lane waits for another warp or is gone; true if any could run. */
static bool run_warp(int warp)
{
    const bool some = block.ready.lanes[warp] != 0;
    while (block.ready.lanes[warp]) {
        block.down = block.turn++ & 1;
        for (int l = block.down ? WARP - 1 : 0; (l = next_ready(warp, l, block.down)) >= 0;) {
            become(&team[warp * WARP + l]);
            fm_fibre_enter(&self->fibre);
            l = self->lane + (block.down ? -1 : 1); /* of the lane that came last */
        }
    }
    self = NULL;
    block.turn++;
    return some;
}

static void explain_deadlock()
{
    char text[256] = "";
    for (int b = 0; b < BARRIERS; b++)
        if (const int n = block.barrier[b].waiting.count())
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     " %d wait at barrier %d for %d,", n, b, block.barrier[b].expected);
    const char *op = NULL;
    for (int i = 0; i < block.n_thread; i++)
        if (block.meeting.lanes[i / WARP] >> i % WARP & 1) op = met[i / WARP].op[i % WARP];
    if (op)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %d wait at %s,",
                 block.meeting.count(), op);
    if (const int n = block.at_phase.count())
        snprintf(text + strlen(text), sizeof text - strlen(text), " %d wait at an mbarrier,", n);
    fm_emu_stop("deadlock: of %d threads%s %d have returned", block.n_thread, text,
                block.gone.count());
}

static bool all_gone()
{
    return block.gone.count() == block.n_thread;
}

static void run_block()
{
    const int n_warp = block.n_warp = (block.n_thread + WARP - 1) / WARP;
    memset(block.barrier, 0, sizeof block.barrier);
    block.ready = block.meeting = block.at_phase = block.gone = {};
    fm_emu_poison_shared();
    for (int i = 0; i < block.n_thread; i++) prepare_thread(&team[i]);
    for (bool some = true; some;) {
        some              = false;
        const int  rotate = (int)(block.turn * 2654435761u >> 16) % n_warp;
        const bool down   = block.turn & 2;
        for (int i = 0; i < n_warp; i++) {
            const int w = (rotate + (down ? n_warp - i : i)) % n_warp;
            some        = run_warp(w) || some;
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
    place_threads(size);
    fm_emu_here.block_dim = size;
    fm_emu_here.grid_dim  = grid;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                fm_emu_here.block = {x, y, z};
                run_block();
            }
    block.kernel = NULL;
}
