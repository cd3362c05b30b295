/* SPDX-License-Identifier: Apache-2.0 */
/* GET /engine_metrics: the metrics of all workers in one text, each sample with a label that names
 * its worker.  The reply waits until every worker that is up has answered, or for a moment. */
#include <stdlib.h>
#include <string.h>

#include "llm/route/gather.h"
#include "llm/serve/reply/write.h"

static const double patience   = 2;
static const size_t most_bytes = (size_t)8 << 20;

/* One worker's text. */
typedef struct {
    const char *url, *text, *at; /* at: in text, behind what was taken from it */
} source;

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

static void put_family(fm_str *out, const char *type, source *s, int n_source)
{
    const size_t n = (size_t)(line_end(type) - type);
    for (int i = 0; i < n_source; i++) {
        const char *at = find_family(s[i].at, type, n);
        if (at) s[i].at = put_samples(out, at, s[i].url);
    }
}

/* The first worker's families; what all have is what counts. */
static void put_all(fm_str *out, source *s, int n)
{
    for (const char *at = n ? s[0].text : ""; *at;) {
        const char *line = at;
        at               = next_line(at);
        if (*line != '#') continue;
        fm_str_add(out, line, (size_t)(at - line));
        if (strncmp(line, "# TYPE ", 7)) continue;
        at = put_samples(out, at, s[0].url);
        put_family(out, line, s + 1, n - 1);
    }
}

static void finish(fm__gather *g)
{
    fm_str  out = {0};
    int     n   = 0;
    source *s   = calloc((size_t)g->n_part, sizeof *s);
    FM_BUG_UNLESS(s != NULL);
    for (const fm__gather_part *p = g->part; p < g->part + g->n_part; p++)
        if (p->is_whole && p->query.status == 200 && p->query.reply.len)
            s[n++] = (source){p->worker->url, p->query.reply.text, p->query.reply.text};
    put_all(&out, s, n);
    fm_exchange_reply(g->x, 200, "text/plain; version=0.0.4; charset=utf-8", NULL,
                      out.text ? out.text : "", out.len);
    fm_str_fini(&out);
    free(s);
}

void fm__engine_metrics(fm_route *r, fm_exchange *x)
{
    const fm__gather_ask ask = {.method     = "GET",
                                .target     = "/metrics",
                                .seconds    = patience,
                                .most_bytes = most_bytes,
                                .finish     = finish};
    if (!fm__gather_begin(r, x, &ask))
        fm_exchange_reply(x, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, "", 0);
}
