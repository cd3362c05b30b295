/* SPDX-License-Identifier: Apache-2.0 */
/* text ──added tokens──> spans ──splits──> pieces ──merges──> ids */
#include <stdlib.h>

#include "llm/text/tokenizer_internal.h"
#include "base/utf8.h"

struct fm_tokenizer_scratch {
    fm__bpe_scratch    *bpe;
    fm__splits_scratch *splits;
};

fm_status fm_tokenizer_scratch_create(fm_tokenizer_scratch **out, const fm_tokenizer *t)
{
    fm_status             rc = FM_OK;
    fm_tokenizer_scratch *s  = calloc(1, sizeof *s);
    if (!s) return fm_fail(FM_E_OOM, "tokenizer scratch");
    FM_GO(fm__bpe_scratch_create(&s->bpe));
    FM_GO(fm__splits_scratch_create(&s->splits, &t->splits));
    *out = s;
    s    = NULL;
out:
    fm_tokenizer_scratch_destroy(s);
    return rc;
}

void fm_tokenizer_scratch_destroy(fm_tokenizer_scratch *s)
{
    if (!s) return;
    fm__bpe_scratch_destroy(s->bpe);
    fm__splits_scratch_destroy(s->splits);
    free(s);
}

void fm_ids_add(fm_ids *ids, int32_t id)
{
    if (ids->n == ids->cap) {
        const size_t cap = ids->cap ? 2 * ids->cap : 256;
        int32_t     *p   = realloc(ids->id, cap * sizeof *p);
        FM_BUG_UNLESS(p != NULL);
        ids->id  = p;
        ids->cap = cap;
    }
    ids->id[ids->n++] = id;
}

void fm_ids_fini(fm_ids *ids)
{
    free(ids->id);
    *ids = (fm_ids){0};
}

struct encoding {
    const fm_tokenizer   *tokenizer;
    fm_tokenizer_scratch *scratch;
    fm_ids               *out;
};

static fm_status encode_piece(void *to, const char *piece, size_t n)
{
    const struct encoding *e = to;
    const fm_tokenizer    *t = e->tokenizer;
    return fm__bpe_encode(&t->bpe, &t->vocab, e->scratch->bpe, piece, n, e->out);
}

/* Cuts the tokens of added[set] out; what is between them goes to the next
 * set, and after the last to the splits. */
static fm_status encode_span(struct encoding *e, int set, const char *text, size_t n)
{
    if (n == 0) return FM_OK;
    if (set == 2)
        return fm__splits_run(&e->tokenizer->splits, e->scratch->splits, text, n, encode_piece, e);

    size_t          from = 0;
    fm__added_match m;
    for (; fm__added_find(&e->tokenizer->added[set], text, n, from, &m); from = m.end) {
        FM_TRY(encode_span(e, set + 1, text + from, m.begin - from));
        fm_ids_add(e->out, m.id);
    }
    return encode_span(e, set + 1, text + from, n - from);
}

fm_status fm_encode(const fm_tokenizer *t, fm_tokenizer_scratch *s, const char *text, size_t len,
                    int flags, fm_ids *out)
{
    const size_t valid = fm_utf8_prefix(text, len);
    if (valid < len) return fm_fail(FM_E_FORMAT, "text is not UTF-8 at byte %zu", valid);

    struct encoding e     = {t, s, out};
    const size_t    n_out = out->n;
    if ((flags & FM_ENCODE_BOS) && t->adds_bos && t->bos >= 0) fm_ids_add(out, t->bos);
    fm__splits_begin(s->splits, len);
    const fm_status rc = encode_span(&e, flags & FM_ENCODE_PLAIN ? 2 : 0, text, len);
    if (rc != FM_OK) out->n = n_out;
    return rc;
}
