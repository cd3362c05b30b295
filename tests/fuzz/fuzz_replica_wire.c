/* SPDX-License-Identifier: Apache-2.0 */
/* A prompt or an event from another replica: what is accepted lies inside the message. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "llm/rank/replica_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned sum_of(const void *p, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++) sum += ((const unsigned char *)p)[i];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    volatile unsigned seen = 0; /* reads every byte that was accepted */
    if (size < 1) return 0;
    char *message = aligned_alloc(8, (size + 6) / 8 * 8 + 8);
    if (!message) return 0;
    memcpy(message, data + 1, size - 1);
    fm_prompt p;
    fm_event  ev;
    if (data[0] & 1 && fm_prompt_read(&p, message, (size - 1) / 8 * 8) == FM_OK) {
        seen += sum_of(p.token, (size_t)p.n_token * sizeof *p.token);
        seen += sum_of(p.sampling.bias, (size_t)p.sampling.n_bias * sizeof *p.sampling.bias);
        for (int i = 0; i < p.n_stop; i++) seen += (unsigned)strlen(p.stop[i]);
        free((void *)p.stop);
    }
    if (!(data[0] & 1) && fm_event_read(&ev, message, (size - 1) / 8 * 8) == FM_OK)
        seen += sum_of(ev.text, ev.text_len) + sum_of(ev.top, (size_t)ev.n_top * sizeof *ev.top);
    free(message);
    return 0;
}
