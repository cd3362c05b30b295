/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

int fm_utf8_length(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first < 0xc2) return 0; /* a continuation, or an overlong form */
    if (first < 0xe0) return 2;
    if (first < 0xf0) return 3;
    return first < 0xf5 ? 4 : 0;
}

int fm_utf8_continues(const unsigned char *held, int n_held, unsigned char next)
{
    unsigned char lo = 0x80, hi = 0xbf;
    if (n_held == 1) {
        switch (held[0]) {
        case 0xe0: lo = 0xa0; break; /* shorter forms exist */
        case 0xed: hi = 0x9f; break; /* surrogates */
        case 0xf0: lo = 0x90; break; /* shorter forms exist */
        case 0xf4: hi = 0x8f; break; /* above U+10FFFF */
        default: break;
        }
    }
    return next >= lo && next <= hi;
}

static size_t ascii_prefix(const char *s, size_t n)
{
    size_t i = 0;
    for (uint64_t word; n - i >= sizeof word; i += sizeof word) {
        memcpy(&word, s + i, sizeof word);
        if (word & 0x8080808080808080u) break;
    }
    while (i < n && (unsigned char)s[i] < 0x80) i++;
    return i;
}

size_t fm_utf8_prefix(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    for (size_t i = 0; i < n;) {
        i += ascii_prefix(s + i, n - i);
        if (i == n) break;
        const int length = fm_utf8_length(u[i]);
        if (!length || n - i < (size_t)length) return i;
        for (int k = 1; k < length; k++)
            if (!fm_utf8_continues(u + i, k, u[i + (size_t)k])) return i;
        i += (size_t)length;
    }
    return n;
}
