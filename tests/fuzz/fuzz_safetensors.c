/* SPDX-License-Identifier: Apache-2.0 */
/* A whole safetensors file: whatever is accepted must lie inside the input. */
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "llm/load/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(const fm_safetensors_entry *e, const uint8_t *data, size_t size)
{
    const uint8_t *begin = e->data;
    FM_BUG_UNLESS(begin >= data && e->end - e->begin <= (size_t)(data + size - begin));
    if (e->n_dim <= 2 && e->readable)
        FM_BUG_UNLESS((uint64_t)e->rows * (uint64_t)e->cols * fm_dtype_bytes(e->dtype) ==
                      e->end - e->begin);
    if (e->end == e->begin) return;
    volatile uint8_t touch = begin[0] ^ begin[e->end - e->begin - 1];
    (void)touch;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fm_safetensors_file *f = NULL;
    if (fm_safetensors_parse(&f, data, size, "input") != FM_OK) return 0;
    for (int32_t i = 0; i < f->n_entry; i++) check_entry(&f->entry[i], data, size);
    fm_safetensors_close(f);
    return 0;
}
