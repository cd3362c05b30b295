/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char        *text = malloc(size + 1);
    fm_http_head h;
    const char  *why = "";
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (fm_http_head_parse(&h, text, size, &why) == 0 && (!h.method || !h.path || !h.query)) abort();
    free(text);
    return 0;
}
