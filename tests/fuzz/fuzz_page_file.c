/* SPDX-License-Identifier: Apache-2.0 */
/* A page of the disk tier from an untrusted writer: a header of the input's bytes with a checksum
 * that fits, and a body of zeros. */
#include <stdint.h>
#include <string.h>

#include "llm/tier/page_file.h"

enum { SUM_AT = 464, FILE_BYTES = FM_PAGE_FILE_BLOCK * 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char          file[FILE_BYTES];
    static const int32_t token[FM_PAGE_HASH_TOKENS];
    const fm_page_format f = {.page_size = 16};
    const size_t         n = size ? FM_PAGE_FILE_BLOCK * (1 + data[0] % 2) : 0;
    memset(file, 0, sizeof file);
    if (!size) return 0;
    memcpy(file, "fm-page\0\1\0\0\0", 12); /* or nearly all is refused at once */
    memcpy(file + 12, data + 1, size - 1 < SUM_AT - 12 ? size - 1 : SUM_AT - 12);
    if (data[0] & 4) {
        const fm_hash128 sum = fm_hash_bytes(file, SUM_AT, FM_PAGE_FILE_VERSION);
        memcpy(file + SUM_AT, &sum, sizeof sum);
    }
    fm_page_file_check(file, n, NULL, (fm_page_hash){0, 0}, NULL);
    fm_page_file_check(file, n, &f, (fm_page_hash){0, 0}, token);
    return 0;
}
