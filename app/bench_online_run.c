/* SPDX-License-Identifier: Apache-2.0 */
/* Arrivals: who is sent when, and what comes back is timed. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/progress.h"
#include "bench_online.h"
#include "json/read.h"

typedef struct run run;

typedef struct {
    run              *run;
    fm_online_answer *answer;
} slot;

struct run {
    fm_client         *client;
    const fm_wire     *wire;
    const fm_arrivals *how;
    const fm_str      *body;
    fm_online_answer  *answer;
    slot              *slot;
    int                n, n_due, n_sent, n_flying, n_done;
    int                sending; /* a call may end before it is sent: no recursion */
    int64_t            n_token;
    double             began, next; /* next: when the next request is due */
    fm_mt              gaps;
    fm_progress        bar;
};

/* NumPy's legacy exponential: one 53-bit draw each.  The generator is seeded for
 * the arrivals alone; bench_serving goes on with the one that drew the dataset,
 * which for ShareGPT is the same. */
double fm_next_gap(fm_mt *g, double rate)
{
    return -log(1.0 - fm_mt_double(g)) / rate;
}

static void show(run *r)
{
    if (r->how->quiet) return;
    char         note[64];
    const double seconds = fm_now() - r->began;
    snprintf(note, sizeof note, "%.1f tok/s", (double)r->n_token / (seconds > 0 ? seconds : 1));
    fm_progress_show(&r->bar, r->n_done, note);
}

static void set_error(fm_online_answer *a, int status, const char *body, size_t len)
{
    json_t     *v    = NULL;
    const char *text = NULL;
    if (len && fm_json_parse(&v, body, len, "error") == FM_OK) {
        const json_t *e = json_object_get(v, "error");
        text            = json_string_value(json_object_get(json_is_object(e) ? e : v, "message"));
    }
    fm_str s = {0};
    fm_str_printf(&s, "status %d: %s", status, text ? text : "no reason given");
    a->error = s.text;
    json_decref(v);
}

static void send_due(run *r);

static void on_event(void *ctx, const char *data, size_t len, double now)
{
    const slot       *s = ctx;
    fm_online_answer *a = s->answer;
    a->latency          = now - a->sent;
    if (a->error) return;
    const int before = a->n_seen;
    fm_wire_read(s->run->wire, a, data, len, now);
    s->run->n_token += a->n_seen - before;
}

static void settle(const run *r, fm_online_answer *a, const fm_client_reply *reply)
{
    if (reply->why)
        a->error = a->error ? a->error : strdup(reply->why);
    else if (reply->status != 200)
        set_error(a, reply->status, reply->body, reply->body_len);
    else if (!r->how->stream)
        fm_wire_read(r->wire, a, reply->body, reply->body_len, reply->ended);
    fm_wire_end(r->wire, a);
    a->latency = reply->ended - a->sent;
    if (!a->error && a->n_output == 0) a->error = strdup("the answer has no tokens");
}

static void on_done(void *ctx, const fm_client_reply *reply)
{
    const slot *s = ctx;
    run        *r = s->run;
    settle(r, s->answer, reply);
    if (!r->how->stream) r->n_token += s->answer->n_output;
    r->n_flying--;
    r->n_done++;
    show(r);
    send_due(r);
}

static void send_next(run *r)
{
    const int            i    = r->n_sent++;
    const fm_client_call call = {.path     = fm_wire_path(r->wire),
                                 .body     = r->body[i].text,
                                 .body_len = r->body[i].len,
                                 .event    = r->how->stream ? on_event : NULL,
                                 .done     = on_done,
                                 .ctx      = &r->slot[i]};
    r->n_flying++;
    r->answer[i].sent = fm_now();
    if (fm_client_send(r->client, &call) == FM_OK) return;
    r->answer[i].error = strdup(fm_why());
    r->n_flying--;
    r->n_done++;
}

static void send_due(run *r)
{
    if (r->sending) return;
    r->sending = 1;
    while (r->n_sent < r->n_due && (r->how->limit == 0 || r->n_flying < r->how->limit))
        send_next(r);
    r->sending = 0;
}

/* Arrivals keep their own schedule: a late timer does not delay the next. */
static void on_arrival(void *ctx)
{
    run *r = ctx;
    for (const double now = fm_now(); r->n_due < r->n && r->next <= now; r->n_due++)
        r->next += fm_next_gap(&r->gaps, r->how->rate);
    send_due(r);
    if (r->n_due == r->n) return;
    if (fm_client_after(r->client, r->next - fm_now(), on_arrival, r) != FM_OK) r->n_due = r->n;
}

static fm_status start(run *r)
{
    for (int i = 0; i < r->n; i++) r->slot[i] = (slot){r, &r->answer[i]};
    fm_mt_seed_numpy(&r->gaps, (uint32_t)r->how->seed);
    r->began = r->next = fm_now();
    if (!r->how->quiet) r->bar = fm_progress_begin(r->how->label, r->n);
    if (isfinite(r->how->rate)) {
        on_arrival(r);
    } else {
        r->n_due = r->n;
        send_due(r);
    }
    return fm_client_run(r->client);
}

static double last_end(const fm_online_answer *a, int n, double began)
{
    double end = began;
    for (int i = 0; i < n; i++) end = fmax(end, a[i].sent + a[i].latency);
    return end;
}

fm_status fm_online_run(fm_client *client, const fm_wire *w, const fm_arrivals *how,
                        const fm_str *body, fm_online_answer *answer, int n, double *seconds)
{
    run r = {.client = client, .wire = w, .how = how, .body = body, .answer = answer, .n = n};
    if (!(r.slot = calloc((size_t)n + 1, sizeof *r.slot))) return fm_fail(FM_E_OOM, "requests");
    const fm_status rc = start(&r);
    if (!how->quiet) {
        show(&r);
        fm_progress_end(&r.bar, NULL);
    }
    *seconds = last_end(answer, n, r.began) - r.began;
    free(r.slot);
    return rc;
}
