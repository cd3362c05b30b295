/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/trace_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any run: sums of two such times do not wrap. */
static const uint64_t most_ns = UINT64_MAX / 4;

/* The bytes, and what they are called in messages. */
typedef struct {
    const char *data;
    size_t      size;
    const char *name;
} source;

static int is_text(const char *text, size_t size)
{
    const char *end = memchr(text, 0, size);
    for (const char *c = text; end && c < end; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) return 0;
    return end != NULL;
}

#define IS_TEXT(array) is_text(array, sizeof(array))

static fm_status check_kind(const source *s, const fm_trace_head *h)
{
    if (s->size < sizeof *h || memcmp(h->magic, FM_TRACE_MAGIC, sizeof h->magic))
        return fm_fail(FM_E_FORMAT,
                       "%s is no trace; --trace FILE of bench, serve, run and scf writes one",
                       s->name);
    if (h->order != FM_TRACE_ORDER)
        return fm_fail(FM_E_FORMAT, "%s: written on a machine with another byte order", s->name);
    if (h->version != FM_TRACE_VERSION)
        return fm_fail(FM_E_FORMAT, "%s: a trace of version %u; this program reads version %d",
                       s->name, h->version, FM_TRACE_VERSION);
    if (h->head_bytes != sizeof *h || h->key_bytes != sizeof(fm_trace_key) ||
        h->sum_bytes != sizeof(fm_trace_sum) || h->span_bytes != sizeof(fm_trace_span))
        return fm_fail(FM_E_FORMAT, "%s: the trace's records have sizes of no known version",
                       s->name);
    return FM_OK;
}

/* [at, at + n * each) lies in the file. */
static int fits(const source *s, uint64_t at, uint64_t n, uint64_t each)
{
    return at % 8 == 0 && at <= s->size && n <= (s->size - at) / each;
}

static fm_status check_places(const source *s, const fm_trace_head *h)
{
    if (h->n_key > h->n_key_max || h->n_key_max > FM_TRACE_KEYS ||
        !fits(s, h->key_at, h->n_key, sizeof(fm_trace_key)) ||
        !fits(s, h->sum_at, h->n_key, sizeof(fm_trace_sum)))
        return fm_fail(FM_E_FORMAT, "%s: the trace's tables lie outside the file of %zu bytes",
                       s->name, s->size);
    if (!h->n_span_max || !fits(s, h->span_at, 0, 1))
        return fm_fail(FM_E_FORMAT, "%s: the trace's ring lies outside the file of %zu bytes",
                       s->name, s->size);
    return FM_OK;
}

static int is_clock(const fm_trace_clock *c)
{
    const int64_t most = INT64_MAX / 4;
    return c->at_ns < most_ns && c->error_ns < most_ns && c->offset_ns < most &&
           c->offset_ns > -most;
}

static fm_status check_facts(const source *s, const fm_trace_head *h)
{
    if (h->n_rank < 1 || h->n_rank > FM_TRACE_MAX_RANKS || h->rank < 0 || h->rank >= h->n_rank)
        return fm_fail(FM_E_FORMAT, "%s: the trace is of rank %d of %d", s->name, h->rank,
                       h->n_rank);
    if (!IS_TEXT(h->host) || !IS_TEXT(h->program) || !IS_TEXT(h->command) || !IS_TEXT(h->task) ||
        !IS_TEXT(h->row))
        return fm_fail(FM_E_FORMAT, "%s: the trace's head has unprintable text", s->name);
    if (h->epoch_ns > most_ns || h->last_ns > most_ns || !is_clock(&h->clock[0]) ||
        !is_clock(&h->clock[1]))
        return fm_fail(FM_E_FORMAT, "%s: the trace's clocks are out of range", s->name);
    return FM_OK;
}

/* --- tables ------------------------------------------------------------------ */

static fm_status check_key(const source *s, const fm_trace_key *k, int i)
{
    if (k->cls < FM_N_TRACE_CLASS && k->name[0] && IS_TEXT(k->name) && IS_TEXT(k->part) &&
        IS_TEXT(k->factor) && IS_TEXT(k->hint))
        return FM_OK;
    return fm_fail(FM_E_FORMAT, "%s: key %d of the trace is damaged", s->name, i);
}

static int is_amount(double x) { return isfinite(x) && x >= 0; }

static fm_status check_sum(const source *s, const fm_trace_sum *x, const fm_trace_key *k)
{
    int good = x->total_ns < most_ns && x->comm_ns <= x->total_ns && x->max_ns < most_ns &&
               is_amount(x->bytes) && is_amount(x->flops) && is_amount(x->square);
    for (int i = 0; i < FM_TRACE_BINS; i++)
        good = good && is_amount(x->bin[i].bytes) && is_amount(x->bin[i].flops) &&
               x->bin[i].ns < most_ns;
    for (int i = 0; i < FM_TRACE_BUCKETS; i++)
        good = good && x->bucket[i] < most_ns / FM_TRACE_BUCKETS;
    if (good && x->count < most_ns) return FM_OK;
    return fm_fail(FM_E_FORMAT, "%s: the sums of \"%s\" are damaged", s->name, k->name);
}

static fm_status read_tables(fm_trace_file *f, const source *s)
{
    const fm_trace_head *h = &f->head;
    const size_t         n = (size_t)h->n_key;
    f->n_key               = (int)n;
    f->key                 = malloc((n + 1) * sizeof *f->key);
    f->sum                 = malloc((n + 1) * sizeof *f->sum);
    if (!f->key || !f->sum) return fm_fail(FM_E_OOM, "trace of %zu keys", n);
    memcpy(f->key, s->data + h->key_at, n * sizeof *f->key);
    memcpy(f->sum, s->data + h->sum_at, n * sizeof *f->sum);
    for (int i = 0; i < f->n_key; i++) {
        FM_TRY(check_key(s, &f->key[i], i));
        FM_TRY(check_sum(s, &f->sum[i], &f->key[i]));
    }
    return FM_OK;
}

/* --- the ring ---------------------------------------------------------------- */

static int is_good(const fm_trace_file *f, const fm_trace_span *p)
{
    return p->key < f->n_key && p->begin_ns < most_ns && p->dur_ns < most_ns;
}

/* Of a full ring the oldest span may be half overwritten: it is left out.  A file that was cut
 * short has fewer spans than its head counts. */
static fm_status read_spans(fm_trace_file *f, const source *s)
{
    const fm_trace_head *h     = &f->head;
    const uint64_t       there = (s->size - h->span_at) / sizeof(fm_trace_span);
    const uint64_t       cap   = h->n_span_max;
    const int            full  = h->n_span > cap;
    const uint64_t       first = full ? h->n_span - cap + 1 : 0;
    const uint64_t       room  = h->n_span < cap ? h->n_span : cap;
    f->n_lost                  = first;
    f->span = malloc(((size_t)(room < there ? room : there) + 1) * sizeof *f->span);
    if (!f->span) return fm_fail(FM_E_OOM, "trace of %llu spans", (unsigned long long)room);
    for (uint64_t i = first; i < h->n_span; i++) {
        const uint64_t at = i % cap;
        fm_trace_span  p;
        if (at < there) memcpy(&p, s->data + h->span_at + at * sizeof p, sizeof p);
        if (at < there && is_good(f, &p))
            f->span[f->n_span++] = p;
        else
            f->n_damaged++;
    }
    return FM_OK;
}

/* A file that was cut short lacks spans, and is accepted as long as it has half of them: a count
 * beyond that is no count. */
static fm_status check_counts(const source *s, const fm_trace_head *h)
{
    const uint64_t there = (s->size - h->span_at) / sizeof(fm_trace_span);
    const uint64_t room  = h->n_span < h->n_span_max ? h->n_span : h->n_span_max;
    if (room / 2 <= there) return FM_OK;
    return fm_fail(FM_E_FORMAT, "%s: cut short: it has %llu of %llu spans", s->name,
                   (unsigned long long)there, (unsigned long long)room);
}

fm_status fm_trace_parse(fm_trace_file *out, const void *data, size_t size, const char *name)
{
    const source  s = {data, size, name};
    fm_trace_file f = {0};
    if (size >= sizeof f.head) memcpy(&f.head, data, sizeof f.head);
    FM_TRY(check_kind(&s, &f.head));
    FM_TRY(check_places(&s, &f.head));
    FM_TRY(check_facts(&s, &f.head));
    FM_TRY(check_counts(&s, &f.head));
    fm_status rc = read_tables(&f, &s);
    if (rc == FM_OK) rc = read_spans(&f, &s);
    if (rc == FM_OK)
        *out = f;
    else
        fm_trace_file_fini(&f);
    return rc;
}

fm_status fm_trace_load(fm_trace_file *out, const char *path)
{
    fm_mapped_file file = {0};
    FM_TRY(fm_mapped_file_open(&file, path));
    const fm_status rc = fm_trace_parse(out, file.data, file.size, path);
    fm_mapped_file_close(&file);
    return rc;
}

void fm_trace_file_fini(fm_trace_file *f)
{
    free(f->key);
    free(f->sum);
    free(f->span);
    *f = (fm_trace_file){0};
}
