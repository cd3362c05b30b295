/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "llm/load/source.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "llm/load/source_internal.h"

void fm_source_close(fm_source *s)
{
    if (s) s->kind->close(s);
}

/* "X.weight" is also what lies packed as "X.weight_packed". */
static int32_t index_of(const fm_source *s, const char *name)
{
    char          packed[200];
    const int32_t i = fm_name_table_find(&s->names, name);
    if (i >= 0) return i;
    const int n = snprintf(packed, sizeof packed, "%s_packed", name);
    return n < (int)sizeof packed ? fm_name_table_find(&s->names, packed) : -1;
}

int fm_source_has(const fm_source *s, const char *name) { return index_of(s, name) >= 0; }

fm_status fm_source_find(const fm_source *s, const char *name, fm_tensor *out)
{
    const int32_t i = index_of(s, name);
    if (i < 0) return fm_fail(FM_E_FORMAT, "%s: tensor %s is missing", s->place, name);
    fm_tensor t = {.name = fm_name_table_name(&s->names, i), .index = i};
    FM_TRY(s->kind->describe(s, i, &t));
    *out = t;
    return FM_OK;
}

const char *fm_source_where(const fm_source *s, const fm_tensor *t)
{
    return s->kind->where(s, (int32_t)t->index);
}

const void *fm_source_data(const fm_source *s, const fm_tensor *t)
{
    const void *p = s->kind->data(s, t);
    return (uintptr_t)p % fm_dtype_bytes(t->dtype) ? NULL : p;
}

void fm_source_prefetch(const fm_source *s, const fm_tensor *t, int64_t row0, int64_t n_row)
{
    const char *data = s->kind->data(s, t);
    if (!data) return;
    const size_t    row_bytes = fm_dtype_row_bytes(t->dtype, (size_t)t->cols);
    const uintptr_t page      = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin     = ((uintptr_t)data + (size_t)row0 * row_bytes) / page * page;
    const uintptr_t end       = (uintptr_t)data + (size_t)(row0 + n_row) * row_bytes;
    madvise((void *)begin, end - begin, MADV_WILLNEED); /* a wish: failing costs only time */
}

/* n values of type `from`, at any address, become floats. */
static void widen(float *dst, const unsigned char *src, fm_dtype from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t half;
        switch (from) {
        case FM_F32: memcpy(&dst[i], src + 4 * i, 4); break;
        case FM_BF16:
            memcpy(&half, src + 2 * i, 2);
            dst[i] = fm_f32_of_bf16(half);
            break;
        case FM_F16:
            memcpy(&half, src + 2 * i, 2);
            dst[i] = fm_f32_of_f16(half);
            break;
        case FM_FP8: dst[i] = fm_f32_of_fp8(src[i]); break;
        case FM_E8M0: dst[i] = fm_f32_of_e8m0(src[i]); break;
        case FM_INT4: dst[i] = (float)((src[i / 2] >> i % 2 * 4 & 15) - 8); break;
        }
    }
}

/* Through a small buffer, so that no kind of source needs to convert. */
static void read_row_f32(const fm_source *s, const fm_tensor *t, int64_t row, int64_t col0,
                         int64_t n_col, float *dst)
{
    enum { CHUNK = 1024 };
    _Alignas(64) unsigned char raw[CHUNK * 4];
    for (int64_t c = 0; c < n_col; c += CHUNK) {
        const int64_t n = n_col - c < CHUNK ? n_col - c : CHUNK;
        s->kind->read_row(s, t, row, col0 + c, n, raw);
        widen(dst + c, raw, t->dtype, n);
    }
}

void fm_source_read(const fm_source *s, const fm_tensor *t, int64_t row0, int64_t n_row,
                    int64_t col0, int64_t n_col, fm_dtype want, void *dst)
{
    FM_BUG_UNLESS(row0 >= 0 && n_row >= 0 && row0 <= t->rows - n_row);
    FM_BUG_UNLESS(col0 >= 0 && n_col >= 0 && col0 <= t->cols - n_col);
    FM_BUG_UNLESS(want == t->dtype || want == FM_F32);

    char        *out       = dst;
    const size_t row_bytes = fm_dtype_row_bytes(want, (size_t)n_col);
    for (int64_t r = row0; r < row0 + n_row; r++, out += row_bytes) {
        if (want == t->dtype)
            s->kind->read_row(s, t, r, col0, n_col, out);
        else
            read_row_f32(s, t, r, col0, n_col, (float *)out);
    }
}
