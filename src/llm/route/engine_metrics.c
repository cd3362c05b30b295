/* SPDX-License-Identifier: Apache-2.0 */
/* GET /engine_metrics: the metrics of all workers in one text, each sample with a label that names
 * its worker.  The reply waits until every worker that is up has answered, or for a moment. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "llm/route/route_internal.h"
#include "llm/serve/reply/write.h"

static const double patience   = 2;
static const size_t most_bytes = (size_t)8 << 20;

struct fm__metrics_wait {
    fm_exchange      *x;
    double            asked;
    fm__metrics_wait *next;
};

/* --- asking ---------------------------------------------------------------- */

static void on_head(void *ctx, int status, const fm_http_head *h)
{
    (void)h;
    ((fm_worker *)ctx)->metrics.status = status;
}

static void on_data(void *ctx, const char *bytes, size_t n)
{
    fm_worker_metrics *m = &((fm_worker *)ctx)->metrics;
    if (m->reply.len + n <= most_bytes) fm_str_add(&m->reply, bytes, n);
}

static void on_done(void *ctx, const char *why)
{
    fm_worker_metrics *m = &((fm_worker *)ctx)->metrics;
    m->fetch             = NULL;
    m->when              = fm_now();
    fm_str_fini(&m->text);
    if (!why && m->status == 200)
        m->text = m->reply;
    else
        fm_str_fini(&m->reply);
    m->reply = (fm_str){0};
}

static void ask(fm_worker *w)
{
    fm_str headers = {0};
    if (w->metrics.fetch || w->health != FM_WORKER_UP) return;
    if (w->api_key) fm_str_printf(&headers, "Authorization: Bearer %s\r\n", w->api_key);
    const fm_fetch_ask a = {.method          = "GET",
                            .target          = "/metrics",
                            .headers         = headers.text,
                            .connect_seconds = patience,
                            .head_seconds    = patience,
                            .idle_seconds    = patience,
                            .head            = on_head,
                            .data            = on_data,
                            .done            = on_done,
                            .ctx             = w};
    w->metrics.fetch     = fm_upstream_send(w->upstream, &a);
    fm_str_fini(&headers);
}

/* --- one text of many ------------------------------------------------------ */

static const char *line_end(const char *at) { return at + strcspn(at, "\n"); }

static const char *next_line(const char *at)
{
    const char *end = line_end(at);
    return *end ? end + 1 : end;
}

/* "name{a="b"} 1" -> "name{worker="URL",a="b"} 1" */
static void put_sample(fm_str *out, const char *line, const char *worker)
{
    const size_t n = (size_t)(line_end(line) - line), name = strcspn(line, "{ \n");
    const int    more = line[name] == '{';
    fm_str_add(out, line, name);
    fm_str_puts(out, "{worker=");
    fm__put_word(out, worker);
    fm_str_puts(out, more ? "," : "}");
    fm_str_add(out, line + name + more, n - name - (size_t)more);
    fm_str_puts(out, "\n");
}

/* Samples from `at` up to the next comment. */
static const char *put_samples(fm_str *out, const char *at, const char *worker)
{
    for (; *at && *at != '#'; at = next_line(at))
        if (*at != '\n') put_sample(out, at, worker);
    return at;
}

/* Behind the comment line that is `n` bytes at `line`; families come in the same order everywhere,
 * so it is looked for from where the last one ended. */
static const char *find_family(const char *text, const char *line, size_t n)
{
    for (; *text; text = next_line(text))
        if (!strncmp(text, line, n) && (text[n] == '\n' || !text[n])) return next_line(text);
    return NULL;
}

static void put_family(fm_str *out, const char *type, fm_worker *w)
{
    const size_t n = (size_t)(line_end(type) - type);
    for (; w; w = w->next) {
        const char *at = w->metrics.at ? find_family(w->metrics.at, type, n) : NULL;
        if (at) w->metrics.at = put_samples(out, at, w->url);
    }
}

/* The first worker's families; what all have is what counts. */
static void put_all(fm_str *out, fm_worker *w)
{
    while (w && !w->metrics.text.len) w = w->next;
    if (!w) return;
    for (fm_worker *o = w->next; o; o = o->next) o->metrics.at = o->metrics.text.text;
    for (const char *at = w->metrics.text.text; *at;) {
        const char *line = at;
        at               = next_line(at);
        if (*line != '#') continue;
        fm_str_add(out, line, (size_t)(at - line));
        if (strncmp(line, "# TYPE ", 7)) continue;
        at = put_samples(out, at, w->url);
        put_family(out, line, w->next);
    }
}

static void reply(fm_route *r, fm_exchange *x)
{
    fm_str out = {0};
    put_all(&out, r->workers);
    fm_exchange_reply(x, 200, "text/plain; version=0.0.4; charset=utf-8", NULL,
                      out.text ? out.text : "", out.len);
    fm_str_fini(&out);
}

/* --- waiting --------------------------------------------------------------- */

void fm__engine_metrics(fm_route *r, fm_exchange *x)
{
    fm__metrics_wait *w = calloc(1, sizeof *w);
    FM_BUG_UNLESS(w != NULL);
    *w               = (fm__metrics_wait){.x = x, .asked = fm_now(), .next = r->metrics_waits};
    r->metrics_waits = w;
    for (fm_worker *o = r->workers; o; o = o->next) ask(o);
}

void fm__engine_metrics_gone(fm_route *r, const fm_exchange *x)
{
    for (fm__metrics_wait **at = &r->metrics_waits; *at; at = &(*at)->next)
        if ((*at)->x == x) {
            fm__metrics_wait *w = *at;
            *at                 = w->next;
            free(w);
            return;
        }
}

void fm__engine_metrics_fini(fm_route *r)
{
    while (r->metrics_waits) fm__engine_metrics_gone(r, r->metrics_waits->x);
}

static int is_complete(const fm_route *r, const fm__metrics_wait *w)
{
    for (const fm_worker *o = r->workers; o; o = o->next)
        if (o->health == FM_WORKER_UP && o->metrics.when < w->asked) return 0;
    return 1;
}

void fm__engine_metrics_tick(fm_route *r)
{
    for (fm__metrics_wait **at = &r->metrics_waits; *at;) {
        fm__metrics_wait *w = *at;
        if (!is_complete(r, w) && fm_now() - w->asked < patience) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        reply(r, w->x);
        free(w);
    }
}
