/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/text/vocab_internal.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_bytes(const char *s, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 32);
}

fm_status fm__vocab_init(fm__vocab *v, size_t n_index)
{
    size_t n_slot = 1024;
    while (n_slot < 2 * n_index) n_slot *= 2;
    if (!(v->slot = malloc(n_slot * sizeof *v->slot))) return fm_fail(FM_E_OOM, "token index");
    memset(v->slot, 0xff, n_slot * sizeof *v->slot);
    v->mask = (uint32_t)n_slot - 1;
    return FM_OK;
}

void fm__vocab_fini(fm__vocab *v)
{
    fm_str_fini(&v->bytes);
    free(v->token);
    free(v->slot);
    *v = (fm__vocab){0};
}

static fm_status grow(fm__vocab *v, int size)
{
    if (size > v->cap) {
        int cap = v->cap ? v->cap : 1024;
        while (cap < size) cap *= 2;
        fm__token *p = realloc(v->token, (size_t)cap * sizeof *p);
        if (!p) return fm_fail(FM_E_OOM, "token table");
        v->token = p;
        v->cap   = cap;
    }
    memset(v->token + v->size, 0, (size_t)(size - v->size) * sizeof *v->token);
    v->size = size;
    return FM_OK;
}

fm_status fm__vocab_put(fm__vocab *v, int32_t id, const char *bytes, size_t n)
{
    FM_BUG_UNLESS(id >= 0 && id < FM__MAX_TOKENS);
    if (id >= v->size) FM_TRY(grow(v, id + 1));
    if (v->bytes.len + n > UINT32_MAX) return fm_fail(FM_E_FORMAT, "tokens of 4 GiB in all");
    v->token[id].at = (uint32_t)v->bytes.len;
    v->token[id].n  = (uint32_t)n;
    fm_str_add(&v->bytes, bytes, n);
    return FM_OK;
}

static uint32_t find_slot(const fm__vocab *v, const char *bytes, size_t n)
{
    uint32_t i = hash_bytes(bytes, n) & v->mask;
    for (;; i = (i + 1) & v->mask) {
        const fm__token_slot *t = &v->slot[i];
        if (t->id < 0 || (t->n == n && memcmp(v->bytes.text + t->at, bytes, n) == 0)) return i;
    }
}

void fm__vocab_index(fm__vocab *v, int32_t id)
{
    const fm__token *t = &v->token[id];
    const uint32_t   i = find_slot(v, v->bytes.text + t->at, t->n);
    v->slot[i]         = (fm__token_slot){t->at, t->n, id};
}

int32_t fm__vocab_find(const fm__vocab *v, const char *bytes, size_t n)
{
    return v->slot[find_slot(v, bytes, n)].id;
}

void fm__alphabet_init(fm__alphabet *a)
{
    int next = 256;
    memset(a->byte_of, 0xff, sizeof a->byte_of);
    for (int b = 0; b < 256; b++) {
        const int printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        a->byte_of[printable ? b : next++] = (int16_t)b;
    }
}

/* The alphabet ends below U+0800, so only one- and two-byte characters count,
 * and bytes are never more than the text that spells them. */
int fm__alphabet_decode(const fm__alphabet *a, const char *text, size_t n, fm_str *out)
{
    const unsigned char *u = (const unsigned char *)text;
    fm_str_clear(out);
    fm_str_add(out, text, n);
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        int code = u[i];
        if (code >= 0xc2 && code < 0xe0 && i + 1 < n) code = (code & 31) << 6 | (u[++i] & 63);
        else if (code >= 0x80) code = FM__ALPHABET_SIZE;
        const int byte = code < FM__ALPHABET_SIZE ? a->byte_of[code] : -1;
        if (byte < 0) {
            memcpy(out->text, text, n);
            return 0;
        }
        out->text[n_out++] = (char)byte;
    }
    out->len         = n_out;
    out->text[n_out] = 0;
    return 1;
}
