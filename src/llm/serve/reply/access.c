/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/serve/reply/access.h"

#include <time.h>

#include "base/clock.h"
#include "llm/serve/reply/write.h"

void fm__put_access(fm_str *line, const fm_exchange *x)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fm_str_printf(line, "{\"time\":%lld.%03ld,\"peer\":", (long long)now.tv_sec,
                  now.tv_nsec / 1000000);
    fm__put_word(line, x->peer);
    fm_str_puts(line, ",\"method\":");
    fm__put_word(line, x->method);
    fm_str_puts(line, ",\"path\":");
    fm__put_word(line, x->path);
    fm_str_puts(line, ",\"request_id\":");
    fm__put_word(line, x->request_id);
    fm_str_printf(line, ",\"status\":%d,\"seconds\":%.6f,\"bytes_in\":%zu,\"bytes_out\":%zu",
                  x->status, fm_now() - x->began, x->body_len, x->sent_bytes);
}
