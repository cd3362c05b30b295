/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/relay/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"

void fm_relay_stream_write(char out[FM_RELAY_HEADER_ROOM], const fm_relay_stream *s)
{
    snprintf(out, FM_RELAY_HEADER_ROOM, "%016" PRIx64 " %" PRId64, s->key, s->created);
}

void fm_relay_resume_write(char out[FM_RELAY_HEADER_ROOM], const fm_relay_resume *r)
{
    snprintf(out, FM_RELAY_HEADER_ROOM, "%zu %d", r->n_byte, r->n_event);
}

int fm_relay_stream_read(fm_relay_stream *s, const char *text)
{
    int n = 0;
    if (!text || strspn(text, "0123456789abcdef") != 16) return 0;
    return sscanf(text, "%16" SCNx64 " %18" SCNd64 "%n", &s->key, &s->created, &n) == 2 && !text[n];
}

int fm_relay_resume_read(fm_relay_resume *r, const char *text)
{
    int n = 0;
    if (!text || strspn(text, "0123456789 ") != strlen(text)) return 0;
    return sscanf(text, "%15zu %9d%n", &r->n_byte, &r->n_event, &n) == 2 && !text[n];
}

void fm_relay_name(char *out, size_t room, const char *prefix, uint64_t key)
{
    const uint64_t k = fm_rng_key("name", key);
    snprintf(out, room, "%s%08x%08x%08x%08x", prefix, fm_rng_u32(k, 0), fm_rng_u32(k, 1),
             fm_rng_u32(k, 2), fm_rng_u32(k, 3));
}

uint64_t fm_relay_seed(uint64_t key, int prompt)
{
    return fm_rng_key("seed", key + (uint64_t)prompt);
}
