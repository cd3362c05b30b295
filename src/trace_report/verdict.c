/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/verdict.h"

#include <string.h>

#include "trace_report/analysis_internal.h"

enum { TOP_WORKS = 3 };

/* Less than this part of the time is not worth a sentence. */
static const double worth = 0.02;

void fm_trace_key_text(fm_str *out, const fm_trace_key *k)
{
    fm_str_puts(out, k->name);
    if (k->part[0]) fm_str_printf(out, " (%s)", k->part);
}

void fm_trace_time_text(fm_str *out, double s)
{
    if (s >= 100)
        fm_str_printf(out, "%.0f s", s);
    else if (s >= 1)
        fm_str_printf(out, "%.2f s", s);
    else if (s >= 1e-3)
        fm_str_printf(out, "%.1f ms", 1e3 * s);
    else
        fm_str_printf(out, "%.1f us", 1e6 * s);
}

static double percent(const fm_trace_analysis *a, double seconds)
{
    return 100 * fm__part(seconds, a->active);
}

static void put_rank(fm_str *out, const fm_trace_analysis *a, int i)
{
    const fm_trace_head *h = &a->job->file[i].head;
    fm_str_printf(out, "rank %d", h->rank);
    if (h->host[0]) fm_str_printf(out, " (%s)", h->host);
}

/* --- computing --------------------------------------------------------------- */

static void put_limit(fm_str *out, const fm_key_total *t, const fm_trace_key *k)
{
    const double of_limit = 100 * fm__part(t->limit, t->own);
    if (2 * t->memory_limit > t->limit)
        fm_str_printf(out, ": reads %.1f GB/s from memory, %.0f %% of its bandwidth",
                      1e-9 * fm__part(t->bytes, t->own), of_limit);
    else
        fm_str_printf(out, ": computes at %.2f TFLOP/s, %.0f %% of the machine's limit for %s",
                      1e-12 * fm__part(t->flops, t->own), of_limit, k->factor);
}

static void put_work(fm_str *out, const fm_trace_analysis *a, const fm_key_total *t)
{
    const fm_trace_key *k = &a->job->row[t->row].key;
    fm_str_printf(out, "%.0f %% of the time: ", percent(a, t->own));
    fm_trace_key_text(out, k);
    if (t->limit > 0)
        put_limit(out, t, k);
    else if (t->bytes > 0)
        fm_str_printf(out, ": %.1f GB/s and %.2f TFLOP/s", 1e-9 * fm__part(t->bytes, t->own),
                      1e-12 * fm__part(t->flops, t->own));
    fm_str_puts(out, ".\n");
}

static const fm_key_total *next_of(const fm_trace_analysis *a, fm_trace_class cls, int *at)
{
    while (*at < a->n_total) {
        const fm_key_total *t = &a->total[(*at)++];
        if (a->job->row[t->row].key.cls == cls) return t;
    }
    return NULL;
}

/* What runs beside other work takes no time of its own. */
static const fm_key_total *next_work(const fm_trace_analysis *a, int *at)
{
    const fm_key_total *t;
    while ((t = next_of(a, FM_TRACE_WORK, at)))
        if (!(a->job->row[t->row].key.flags & FM_TRACE_BESIDE)) return t;
    return NULL;
}

static void put_works(fm_str *out, const fm_trace_analysis *a)
{
    const fm_key_total *t;
    for (int at = 0, n = 0; n < TOP_WORKS && (t = next_work(a, &at)); n++)
        if (t->own > worth * a->active) put_work(out, a, t);
}

/* Where the limits come from, if any are known. */
static void put_limits_known(fm_str *out, const fm_trace_analysis *a)
{
    const fm_key_total *t;
    int                 any_cost = 0, any_limit = 0;
    for (int at = 0; (t = next_of(a, FM_TRACE_WORK, &at));) {
        any_cost |= t->bytes > 0;
        any_limit |= t->limit > 0;
    }
    if (!any_cost) return;
    if (any_limit)
        fm_str_printf(out, "Limits are known: fathom doctor measured them on %s, %s.\n",
                      a->rates->rank[0].host, a->rates->made);
    else
        fm_str_printf(out, "Limits are not known%s: fathom doctor measures them.\n",
                      a->rates ? " for this device" : "");
}

/* --- ranks ------------------------------------------------------------------- */

/* A rank that is hardly slower in its ops has other work, or the others' clock is wrong. */
static void put_late(fm_str *out, const fm_trace_analysis *a)
{
    const fm_late *l = &a->late;
    if (a->all.wait < worth * a->active) return;
    fm_str_printf(out, "%.0f %% of the time ranks wait for ",
                  percent(a, l->rank < 0 ? a->all.wait : l->caused));
    if (l->rank < 0) {
        fm_str_puts(out, "each other; no rank is late more often than the others.\n");
        return;
    }
    put_rank(out, a, l->rank);
    if (l->slower > worth && l->row >= 0) {
        fm_str_printf(out, ", which is %.0f %% slower in its ops, most in ", 100 * l->slower);
        fm_trace_key_text(out, &a->job->row[l->row].key);
        fm_str_printf(out, " (%.0f %% slower)", 100 * l->row_slower);
    } else {
        fm_str_puts(out, ", which is not slower in any op: it arrives late for another reason");
    }
    fm_str_puts(out, ".\n");
}

static void put_bytes(fm_str *out, double bytes)
{
    const int is_large = bytes >= 1e8;
    fm_str_printf(out, "%.2f %s", (is_large ? 1e-9 : 1e-6) * bytes, is_large ? "GB" : "MB");
}

static void put_moving(fm_str *out, const fm_trace_analysis *a)
{
    const double        move = a->all.comm - a->all.wait;
    const fm_key_total *t, *most = NULL;
    if (move < worth * a->active) return;
    for (int at = 0; (t = next_of(a, FM_TRACE_COLLECTIVE, &at));)
        if (!(a->job->row[t->row].key.flags & FM_TRACE_AWAITS) &&
            (!most || t->busy - t->wait > most->busy - most->wait))
            most = t;
    fm_str_printf(out, "%.0f %% of the time ranks move bytes", percent(a, move));
    if (most) {
        fm_str_puts(out, ", most in ");
        fm_trace_key_text(out, &a->job->row[most->row].key);
        fm_str_puts(out, ": ");
        put_bytes(out, most->bytes);
        fm_str_puts(out, " at ");
        put_bytes(out, fm__part(most->bytes, most->busy - most->wait));
        fm_str_puts(out, "/s a rank");
    }
    fm_str_puts(out, ".\n");
}

/* --- the host ---------------------------------------------------------------- */

/* GPU idle time: the cause is unknown, so list the largest host phases. */
static void put_starved(fm_str *out, const fm_trace_analysis *a)
{
    const fm_key_total *t;
    double              all = 0;
    if (!a->all.has_device || a->all.rest < worth * a->active) return;
    fm_str_printf(out, "%.1f %% of the time the GPU has nothing to do and waits for the host",
                  percent(a, a->all.rest));
    for (int at = 0; (t = next_of(a, FM_TRACE_PHASE, &at));)
        if (!(a->job->row[t->row].key.flags & FM_TRACE_IS_DEVICE)) all += t->own;
    for (int at = 0, n = 0; (t = next_of(a, FM_TRACE_PHASE, &at));) {
        const fm_trace_key *k = &a->job->row[t->row].key;
        if (k->flags & FM_TRACE_IS_DEVICE || t->own < 0.2 * all) continue;
        fm_str_printf(out, "%s %s %.0f %%", n++ ? "," : ", whose own time is", k->name,
                      100 * fm__part(t->own, all));
    }
    fm_str_puts(out, ".\n");
}

static void put_host(fm_str *out, const fm_trace_analysis *a)
{
    const fm_key_total *t;
    if (a->all.gap >= worth * a->active)
        fm_str_printf(out, "%.1f %% of the time are gaps between steps.\n", percent(a, a->all.gap));
    if (a->all.host >= worth * a->active) {
        fm_str_printf(out, "%.1f %% of the time the host prepares and finishes steps:",
                      percent(a, a->all.host));
        for (int at = 0; (t = next_of(a, FM_TRACE_PHASE, &at));) {
            const fm_trace_key *k = &a->job->row[t->row].key;
            if (k->flags || t->own < 0.2 * a->all.host) continue;
            fm_str_printf(out, " %s %.1f %%", k->name, percent(a, t->own));
        }
        fm_str_puts(out, ".\n");
    }
    if (a->all.await >= worth * a->active)
        fm_str_printf(out, "%.1f %% of the time ranks wait for the next plan.\n",
                      percent(a, a->all.await));
    if (!a->all.has_device && a->all.rest >= worth * a->active)
        fm_str_printf(out, "%.1f %% of the time lies between ops.\n", percent(a, a->all.rest));
}

static void put_stalls(fm_str *out, const fm_trace_analysis *a)
{
    enum { TIMES = 4 };
    const fm_stalls *s = &a->stalls;
    if (!s->n || s->worst < TIMES * s->usual) return;
    const fm_trace_key  *k = &a->job->row[s->row].key;
    const fm_trace_head *h = &a->job->file[0].head;
    fm_str_printf(out, "Stalls: %d step%s \"%s\" took up to ", s->n, s->n > 1 ? "s" : "", k->name);
    fm_trace_time_text(out, s->worst);
    fm_str_printf(out, " (%u %ss) where \"%s\" takes ", s->rows, h->row,
                  a->job->row[s->usual_row].key.name);
    fm_trace_time_text(out, s->usual);
    fm_str_printf(out, "; in the longest %u %s%s waited.", s->tasks, h->task,
                  s->tasks > 1 ? "s" : "");
    if (k->hint[0]) fm_str_printf(out, "  To try: %s.", k->hint);
    fm_str_puts(out, "\n");
}

static void put_tasks(fm_str *out, const fm_trace_analysis *a)
{
    const fm_key_total *t;
    int                 n = 0;
    for (int at = 0; (t = next_of(a, FM_TRACE_TASK, &at)); n++) {
        const fm_trace_key *k = &a->job->row[t->row].key;
        if (!n) fm_str_printf(out, "A %s is ", a->job->file[0].head.task);
        fm_str_printf(out, "%s%s ", n ? ", " : "", k->name);
        fm_trace_time_text(out, t->mean);
        if (t->p99 > 0) {
            fm_str_puts(out, " (99 % below ");
            fm_trace_time_text(out, t->p99);
            fm_str_puts(out, ")");
        }
    }
    if (n) fm_str_puts(out, " on average.\n");
}

/* --- the largest win --------------------------------------------------------- */

typedef struct {
    double      seconds;
    fm_str      what;
    const char *hint;
} win;

/* Takes over `what` if it is the larger one. */
static void offer(win *w, double seconds, fm_str *what, const char *hint)
{
    if (seconds > w->seconds) {
        fm_str_fini(&w->what);
        *w = (win){seconds, *what, hint};
    } else {
        fm_str_fini(what);
    }
    *what = (fm_str){0};
}

static void offer_works(win *w, const fm_trace_analysis *a)
{
    const fm_key_total *t;
    for (int at = 0; (t = next_work(a, &at));) {
        const fm_trace_key *k    = &a->job->row[t->row].key;
        fm_str              what = {0};
        if (!(t->limit > 0)) continue;
        fm_str_puts(&what, "bring ");
        fm_trace_key_text(&what, k);
        fm_str_printf(&what, " from %.0f %% of the machine's limit to the limit",
                      100 * fm__part(t->limit, t->own));
        offer(w, t->own - t->limit, &what, k->hint);
    }
}

static int is_one_host(const fm_trace_job *j)
{
    for (int i = 1; i < j->n; i++)
        if (strcmp(j->file[i].head.host, j->file[0].head.host) != 0) return 0;
    return 1;
}

static void offer_ranks(win *w, const fm_trace_analysis *a)
{
    fm_str what = {0};
    if (a->late.rank >= 0) {
        fm_str_puts(&what, "make ");
        put_rank(&what, a, a->late.rank);
        fm_str_puts(&what, " as fast as the others, or leave it out");
        offer(w, a->late.caused, &what, "fathom doctor says what is wrong with its node");
    } else {
        fm_str_puts(&what, "balance the ranks: they wait for each other");
        offer(w, a->all.wait, &what, "");
    }
    fm_str_puts(&what, "move fewer bytes between ranks");
    offer(w, a->all.comm - a->all.wait, &what,
          is_one_host(a->job) ? "" : "a layout that keeps groups on one host");
}

static void offer_host(win *w, const fm_trace_analysis *a)
{
    const char         *task = a->job->file[0].head.task;
    const fm_key_total *t;
    fm_str              what = {0};
    if (a->all.has_device) {
        fm_str_puts(&what, "keep the GPU busy while the host prepares the next step");
        if (task[0]) fm_str_printf(&what, ", with more %ss at once", task);
        offer(w, a->all.rest, &what, "--html shows when it waits");
        return;
    }
    for (int at = 0; (t = next_of(a, FM_TRACE_PHASE, &at));) {
        const fm_trace_key *k = &a->job->row[t->row].key;
        if (k->flags) continue;
        fm_str_printf(&what, "shorten the phase \"%s\"", k->name);
        offer(w, t->own, &what, k->hint);
    }
    for (int at = 0; (t = next_of(a, FM_TRACE_GAP, &at));) {
        fm_str_puts(&what, "close the gaps between steps");
        offer(w, t->own, &what, a->job->row[t->row].key.hint);
    }
    fm_str_puts(&what, "shorten what lies between ops");
    offer(w, a->all.rest, &what, "");
}

static void put_win(fm_str *out, const fm_trace_analysis *a)
{
    win w = {0};
    offer_works(&w, a);
    offer_ranks(&w, a);
    offer_host(&w, a);
    if (w.seconds >= worth * a->active) {
        fm_str_printf(out, "The largest single win: %s, %.0f %% of the time", w.what.text,
                      percent(a, w.seconds));
        if (w.hint[0]) fm_str_printf(out, " (%s)", w.hint);
        fm_str_puts(out, ".\n");
    } else {
        fm_str_printf(out, "No single win of %.0f %% of the time or more is known.\n", 100 * worth);
    }
    fm_str_fini(&w.what);
}

void fm_trace_verdict(fm_str *out, const fm_trace_analysis *a)
{
    if (!(a->active > 0)) {
        fm_str_puts(out, "Nothing was recorded but idle time.\n");
        return;
    }
    put_works(out, a);
    put_late(out, a);
    put_moving(out, a);
    put_host(out, a);
    put_starved(out, a);
    put_stalls(out, a);
    put_tasks(out, a);
    put_win(out, a);
    put_limits_known(out, a);
}
