/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels run when they are launched, but for the host a stream is as far behind
 * as it may be: what is copied to pinned memory arrives there when it is waited
 * for and is garbage until then, and pinned memory that is copied from must not
 * change before.  All streams are one. */
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "cuda_runtime.h"
#include "grid.h"

struct copy {
    uint64_t          at; /* in the order of the stream */
    bool              is_back;
    char             *host;
    std::vector<char> bytes;
};

struct fm_emu_event {
    uint64_t at;
};

enum { GARBAGE = 0xa5 };

static std::deque<copy>         waiting;
static std::map<char *, size_t> pinned;
static uint64_t                 n_work, n_done;
static bool                     was_asked;
static std::recursive_mutex     lock; /* weights are brought by several threads */

typedef std::lock_guard<std::recursive_mutex> locked;

static bool is_pinned(const void *p)
{
    auto next = pinned.upper_bound((char *)p);
    if (next == pinned.begin()) return false;
    --next;
    return (char *)p < next->first + next->second;
}

static void check_source(const copy &c)
{
    if (memcmp(c.host, c.bytes.data(), c.bytes.size()) != 0)
        fm_emu_stop("%zu bytes at %p changed before the device had read them", c.bytes.size(),
                    c.host);
}

static void reach(uint64_t at)
{
    for (; !waiting.empty() && waiting.front().at <= at; waiting.pop_front()) {
        const copy &c = waiting.front();
        if (c.is_back)
            memcpy(c.host, c.bytes.data(), c.bytes.size());
        else
            check_source(c);
    }
    if (at > n_done) n_done = at;
}

/* What arrives in memory that an earlier copy reads: in the stream's order that
 * is well, and the garbage is ours. */
static void spoil(char *host, size_t bytes)
{
    for (copy &c : waiting) {
        if (c.is_back || c.host >= host + bytes || c.host + c.bytes.size() <= host) continue;
        check_source(c);
        c.bytes.clear();
    }
    memset(host, GARBAGE, bytes);
}

/* What an earlier copy brings to the memory that is now read has landed by then, in the stream's
 * order. */
static void land(const char *host, size_t bytes)
{
    uint64_t at = 0;
    for (const copy &c : waiting)
        if (c.is_back && c.host < host + bytes && host < c.host + c.bytes.size()) at = c.at;
    if (at) reach(at);
}

/* Every second question is answered with yes. */
static cudaError_t ask(uint64_t at)
{
    if (at <= n_done) return cudaSuccess;
    was_asked = !was_asked;
    if (was_asked) return cudaErrorNotReady;
    reach(at);
    return cudaSuccess;
}

/* --- copies ---------------------------------------------------------------- */

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    const locked held(lock);
    const cudaError_t e = cudaMalloc(out, bytes);
    if (e == cudaSuccess) pinned[(char *)*out] = bytes;
    return e;
}

cudaError_t cudaFreeHost(void *p)
{
    const locked held(lock);
    reach(n_work);
    pinned.erase((char *)p);
    return cudaFree(p);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    const locked held(lock);
    reach(n_work);
    if (bytes) memmove(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t s)
{
    const locked held(lock);
    if (!bytes) return cudaSuccess;
    if (fm_emu_is_recording()) {
        fm_emu_record([=]() { (void)cudaMemcpyAsync(to, from, bytes, kind, s); });
        return cudaSuccess;
    }
    const bool  is_back = kind == cudaMemcpyDeviceToHost;
    char *const host    = is_back ? (char *)to : (char *)from;
    const bool  is_late = (is_back || kind == cudaMemcpyHostToDevice) && is_pinned(host);
    if (is_back && !is_late) return cudaMemcpy(to, from, bytes, kind); /* waits */
    if (is_late && !is_back) land(host, bytes);
    if (is_late)
        waiting.push_back({++n_work, is_back, host,
                           std::vector<char>((const char *)from, (const char *)from + bytes)});
    if (is_late && is_back)
        spoil(host, bytes);
    else
        memmove(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t s)
{
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
    for (size_t i = 0; i < height; i++) {
        const cudaError_t e = cudaMemcpyAsync((char *)to + i * to_pitch, (const char *)from + i * from_pitch,
                                              width, kind, s);
        if (e != cudaSuccess) return e;
    }
    return cudaSuccess;
}

/* --- waiting --------------------------------------------------------------- */

cudaError_t cudaDeviceSynchronize()
{
    const locked held(lock);
    reach(n_work);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t)
{
    const locked held(lock);
    return fm_emu_is_recording() ? cudaErrorInvalidValue : ask(n_work);
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    if (fm_emu_is_recording()) return cudaErrorInvalidValue;
    return cudaDeviceSynchronize();
}

cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    *e = new fm_emu_event{0};
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    return cudaEventCreate(e);
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t)
{
    const locked held(lock);
    if (fm_emu_is_recording()) return cudaSuccess; /* all streams are one: they need not meet */
    e->at = ++n_work;
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    const locked held(lock);
    return ask(e->at);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    const locked held(lock);
    reach(e->at);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t)
{
    *ms = 1;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return cudaSuccess;
}
