/* SPDX-License-Identifier: Apache-2.0 */
/* The execution model: a grid runs block by block, a block's threads are
 * fibres, and where CUDA makes threads meet (barriers, warp collectives) they
 * wait for each other here.
 *
 *     grid ─> block ─> warps in changing order ─> lanes, forwards or backwards
 *
 * The order changes from turn to turn, so that a missing barrier has a chance
 * to show; it is the same in every run of a program.  Shared memory is filled
 * with ones before each block (NaN, -1), and guarded behind its end.  What
 * cannot go on says so in one sentence and aborts. */
#ifndef FM_TESTS_CUDA_EMULATOR_GRID_H
#define FM_TESTS_CUDA_EMULATOR_GRID_H

#include <stddef.h>
#include <stdint.h>

#include <functional>

#include "vector_types.h"

/* Where the running thread is; what threadIdx and its like read. */
struct fm_emu_place {
    uint3 thread, block;
    dim3  block_dim, grid_dim;
    int   lane;
};
extern fm_emu_place fm_emu_here;

void fm_emu_run(const char *kernel, const void *address, dim3 grid, dim3 block, size_t smem_bytes,
                void (*body)(const void *), const void *arg);

/* What goes to a stream: it runs at once, or is kept while a stream is recorded (runtime.cpp). */
bool fm_emu_is_recording();
void fm_emu_record(std::function<void()> work);

/* Arguments are copied when a kernel is launched, not when it runs. */
template <class... P, class... A>
static inline void fm_emu_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                                 size_t smem_bytes, A... arg)
{
    const auto body = [=]() { kernel(static_cast<P>(arg)...); };
    const auto run  = [=]() {
        fm_emu_run(
            name, (const void *)kernel, grid, block, smem_bytes,
            [](const void *f) { (*static_cast<decltype(&body)>(f))(); }, &body);
    };
    if (fm_emu_is_recording())
        fm_emu_record(run);
    else
        run();
}

/* Dynamic shared memory of the block. */
struct fm_emu_span {
    unsigned char *memory;
    size_t         size;
};
extern fm_emu_span fm_emu_dynamic;

static inline unsigned char *fm_emu_shared_bytes() { return fm_emu_dynamic.memory; }

/* Ends the program unless all `bytes` at p are shared memory of this block. */
void fm_emu_need_static_shared(const char *what, const void *p, size_t bytes, size_t alignment);
static inline void fm_emu_need_shared(const char *what, const void *p, size_t bytes, size_t alignment)
{
    const size_t at = (size_t)((const unsigned char *)p - fm_emu_dynamic.memory), size = fm_emu_dynamic.size;
    if (at < size && bytes <= size - at && (uintptr_t)p % alignment == 0) return;
    fm_emu_need_static_shared(what, p, bytes, alignment);
}

void fm_emu_barrier(int id, int threads); /* threads 0: the whole block */
void fm_emu_barrier_arrive(int id, int threads); /* counts, but does not wait */

/* A warp-level barrier of the lanes of `mask`; the last one calls work() with the argument of each
 * (NULL for lanes outside), then all go on.  `op` must be the same everywhere. */
void fm_emu_meet(const char *op, unsigned mask, void *mine,
                 void (*work)(void *const *all, unsigned mask));

/* Copies that land at a wait; until then their target is poison. */
void fm_emu_copy(void *smem, const void *gmem, size_t bytes, bool pred); /* 16, or 4 */
void fm_emu_copy_commit();
void fm_emu_copy_wait(int n_in_flight);
void fm_emu_take_copies(
    const std::function<void(void *to, const void *from, size_t bytes)> &take); /* NULL: 0 */

/* A thread waits until another wakes all that wait there. */
void fm_emu_sleep_at(const void *mbarrier);
void fm_emu_wake(const void *mbarrier);

[[noreturn]] void fm_emu_stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
