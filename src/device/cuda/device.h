/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU as a place for bytes and work, for C files that do not see CUDA's
 * headers.  Every call is about the device this process opened; there is one. */
#ifndef FM_DEVICE_CUDA_DEVICE_H
#define FM_DEVICE_CUDA_DEVICE_H

#include <stddef.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char   name[256];
    int    n_sm;
    size_t total, available; /* bytes, when it was opened */
} fm_cuda_device;

int fm_cuda_count(void); /* 0: no GPU, or no driver for it */

/* Is there a GPU that kernels are built for?  FM_E_DEVICE, saying why not. */
fm_status fm_cuda_usable(void);

/* Before any other call.  FM_E_DEVICE: there is no such device, or it is not a
 * Hopper GPU, for which alone kernels are built. */
fm_status fm_cuda_open(fm_cuda_device *out, int index);

fm_status fm_cuda_stream_create(fm_stream *out);
void      fm_cuda_stream_destroy(fm_stream s);
fm_status fm_cuda_stream_is_done(fm_stream s, int *done); /* reports its faults, too */
fm_status fm_cuda_stream_wait(fm_stream s); /* until all work in it is done; reports its faults */

/* A mark (CUDA event) is set behind the work that is in a stream now, and reached when that work is
 * done.  A mark that was never set counts as reached. */
fm_status fm_cuda_mark_create(fm_mark *out);
void      fm_cuda_mark_destroy(fm_mark m); /* NULL is fine */
fm_status fm_cuda_mark_set(fm_mark m, fm_stream s);
fm_status fm_cuda_mark_wait(fm_mark m, fm_stream s); /* later work of s starts when it is reached */
fm_status fm_cuda_mark_is_reached(fm_mark m, int *reached); /* reports faults before it, too */

fm_status fm_cuda_alloc(void **out, size_t bytes, const char *what);
void      fm_cuda_free(void *p); /* NULL is fine */

/* Pinned (page-locked) host memory, which the device copies from and to directly. */
fm_status fm_cuda_alloc_pinned(void **out, size_t bytes, const char *what);
void      fm_cuda_free_pinned(void *p); /* NULL is fine */

/* Copies in the order of the stream; the host memory is borrowed until they are done. */
fm_status fm_cuda_upload(void *dst, const void *src, size_t bytes, fm_stream s);
fm_status fm_cuda_download(void *dst, const void *src, size_t bytes, fm_stream s);
/* n rows of `width` bytes, with a stride in bytes on each side. */
typedef struct {
    char  *device, *host;
    size_t device_stride, host_stride, width;
    int    n;
} fm_rows_copy;
fm_status fm_cuda_upload_rows(const fm_rows_copy *c, fm_stream s);
fm_status fm_cuda_download_rows(const fm_rows_copy *c, fm_stream s);
fm_status fm_cuda_copy(void *dst, const void *src, size_t bytes, fm_stream s); /* on the device */
fm_status fm_cuda_clear(void *dst, size_t bytes, fm_stream s);

#ifdef __cplusplus
}
#endif

#endif
