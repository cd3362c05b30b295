/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/report_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "json/print.h"
#include "trace_report/analysis_internal.h"
#include "trace_report/verdict.h"

static json_t *account_json(const fm_account *r)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "wall_s", r->wall, "idle_s",
                     r->idle, "gap_s", r->gap, "host_s", r->host, "await_plan_s", r->await,
                     "compute_s", r->work, "wait_s", r->wait, "move_s", r->comm - r->wait,
                     r->has_device ? "device_idle_s" : "between_ops_s", r->rest);
}

static json_t *rank_json(const fm_trace_analysis *a, int i)
{
    const fm_trace_file *f = &a->job->file[i];
    json_t              *o = account_json(&a->account[i]);
    json_object_set_new(o, "rank", json_integer(f->head.rank));
    json_object_set_new(o, "host", json_string(f->head.host));
    json_object_set_new(o, "began_unix_ms", json_integer((json_int_t)(f->head.wall_ns / 1000000)));
    json_object_set_new(o, "others_waited_s", json_real(a->caused[i]));
    json_object_set_new(o, "spans", json_integer((json_int_t)f->n_span));
    json_object_set_new(o, "spans_overwritten", json_integer((json_int_t)f->n_lost));
    json_object_set_new(o, "spans_damaged", json_integer((json_int_t)f->n_damaged));
    json_object_set_new(o, "is_closed", json_boolean(f->head.is_closed));
    return o;
}

static json_t *key_json(const fm_trace_analysis *a, const fm_key_total *t)
{
    const fm_trace_key *k = &a->job->row[t->row].key;
    json_t             *o =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "class",
                  fm__class_text(k), "name", k->name, "part", k->part, "count",
                  (json_int_t)t->count, "rows", (json_int_t)t->rows, "total_s", t->total, "own_s",
                  t->own, "mean_s", t->mean, "p50_s", t->p50, "p99_s", t->p99, "max_s", t->max);
    if (t->bytes > 0) json_object_set_new(o, "bytes", json_real(t->bytes));
    if (t->flops > 0) json_object_set_new(o, "flops", json_real(t->flops));
    if (t->limit > 0) {
        json_object_set_new(o, "limit_s", json_real(t->limit));
        json_object_set_new(o, "limit_of_memory_s", json_real(t->memory_limit));
    }
    if (k->cls == FM_TRACE_COLLECTIVE) {
        json_object_set_new(o, "busy_s", json_real(t->busy));
        json_object_set_new(o, "wait_s", json_real(t->wait));
        if (t->late >= 0)
            json_object_set_new(o, "late_rank", json_integer(a->job->file[t->late].head.rank));
    }
    if (k->flags & FM_TRACE_IS_DEVICE) json_object_set_new(o, "is_device", json_true());
    return o;
}

static json_t *late_json(const fm_trace_analysis *a)
{
    const fm_late *l = &a->late;
    if (l->rank < 0) return json_null();
    json_t *o = json_pack("{s:i, s:s, s:f, s:f, s:f}", "rank", a->job->file[l->rank].head.rank,
                          "host", a->job->file[l->rank].head.host, "others_waited_s", l->caused,
                          "share_of_waiting", l->share, "slower", l->slower);
    if (l->row >= 0) {
        json_object_set_new(o, "slowest_op", json_string(a->job->row[l->row].key.name));
        json_object_set_new(o, "slower_in_it", json_real(l->row_slower));
    }
    return o;
}

static json_t *stalls_json(const fm_stalls *s)
{
    return json_pack("{s:i, s:f, s:f, s:f, s:I, s:I}", "steps", s->n, "usual_s", s->usual,
                     "worst_s", s->worst, "lost_s", s->lost, "rows_of_worst", (json_int_t)s->rows,
                     "tasks_of_worst", (json_int_t)s->tasks);
}

static json_t *verdict_json(const fm_trace_analysis *a)
{
    json_t *lines = json_array();
    fm_str  text  = {0};
    fm_trace_verdict(&text, a);
    for (char *at = text.text, *end; at && *at; at = end + 1) {
        if (!(end = strchr(at, '\n'))) break;
        json_array_append_new(lines, json_stringn(at, (size_t)(end - at)));
    }
    fm_str_fini(&text);
    return lines;
}

void fm_trace_json(fm_str *out, const fm_trace_analysis *a)
{
    const fm_trace_head *h     = &a->job->file[0].head;
    json_t              *ranks = json_array(), *keys = json_array();
    for (int i = 0; i < a->job->n; i++) json_array_append_new(ranks, rank_json(a, i));
    for (int i = 0; i < a->n_total; i++) json_array_append_new(keys, key_json(a, &a->total[i]));
    json_t *o =
        json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:f, s:o, s:o, s:o}", "program", h->program,
                  "command", h->command, "ranks_of_job", a->job->n_rank, "verdict", verdict_json(a),
                  "all", account_json(&a->all), "late", late_json(a), "calls_matched", a->matched,
                  "stalls", stalls_json(&a->stalls), "ranks", ranks, "keys", keys);
    fm_json_print(out, o);
}
