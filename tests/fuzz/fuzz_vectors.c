/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of orbitals for a basis of two functions. */
#define _GNU_SOURCE
#include "fuzz_file.h"

#include "chem/vectors/vectors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const fm_basis basis = {.n_function = 2};
    fm_vectors     v     = {0};
    if (fm_vectors_read(&v, file_of(data, size), &basis) != FM_OK) {
        FM_BUG_UNLESS(fm_why()[0]);
        return 0;
    }
    FM_BUG_UNLESS(v.n_function == 2 && v.n_orbital >= 1 && v.n_orbital <= 2);
    fm_vectors_fini(&v);
    return 0;
}
