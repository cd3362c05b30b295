/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "json/print.h"
#include "trace_report/analysis_internal.h"
#include "trace_report/compare.h"
#include "trace_report/verdict.h"

static const char *kind_text(const fm_trace_change *c)
{
    switch (c->kind) {
    case FM_CHANGE_CHANCE: return "chance";
    case FM_CHANGE_SIGNIFICANT: return "significant";
    case FM_CHANGE_CALLS: return c->more > 0 ? "more calls" : "fewer calls";
    case FM_CHANGE_NEW: return "new";
    case FM_CHANGE_GONE: return "gone";
    case FM_CHANGE_SUM: return "sum of all";
    }
    return "";
}

static int is_in_both(const fm_trace_change *c) { return c->a.n > 0 && c->b.n > 0; }

static double percent_more(const fm_trace_change *c)
{
    return 100 * (fm__part(c->b.mean, c->a.mean) - 1);
}

/* --- text -------------------------------------------------------------------- */

static void put_mean(fm_str *out, const fm_moments *s)
{
    fm_str time = {0};
    if (s->n > 0)
        fm_trace_time_text(&time, s->mean);
    else
        fm_str_puts(&time, "-");
    fm_str_printf(out, " %10s", time.text);
    fm_str_fini(&time);
}

/* A step and a stage of a task may have one name: the class, or the task's noun, tells them apart.
 */
static void put_change(fm_str *out, const fm_trace_comparison *o, const fm_trace_change *c)
{
    fm_str name = {0};
    fm_trace_key_text(&name, &c->key);
    fm_str_printf(out, "%-10s %-30.30s",
                  c->key.cls == FM_TRACE_TASK ? o->task : fm__class_text(&c->key), name.text);
    fm_str_fini(&name);
    put_mean(out, &c->a);
    put_mean(out, &c->b);
    if (is_in_both(c) && c->a.mean > 0)
        fm_str_printf(out, " %+8.1f %%", percent_more(c));
    else
        fm_str_printf(out, " %10s", "-");
    fm_str_printf(out, " %+9.3f s  %s\n", c->more, kind_text(c));
}

static void put_rate(fm_str *out, const fm_trace_comparison *o)
{
    const double x = o->rate_a, y = o->rate_b;
    if (!(x > 0) || !(y > 0)) return;
    fm_str_printf(out, "%.1f %ss a second and rank before, %.1f after: %s by %.1f %%.\n", x, o->row,
                  y, y >= x ? "faster" : "slower", 100 * fabs(y / x - 1));
}

static void put_cause(fm_str *out, const fm_trace_comparison *o)
{
    if (o->cause < 0) {
        fm_str_puts(out, "No part changed by more than chance.\n");
        return;
    }
    const fm_trace_change *c = &o->change[o->cause];
    fm_str_puts(out, "What weighs most: ");
    fm_trace_key_text(out, &c->key);
    if (c->kind == FM_CHANGE_SIGNIFICANT)
        fm_str_printf(out, ", %+.1f %% a call", percent_more(c));
    else if (c->kind != FM_CHANGE_SUM)
        fm_str_printf(out, ", %s", kind_text(c));
    fm_str_printf(out, ", %+.3f s in all", c->more);
    if (c->more * o->more > 0) fm_str_printf(out, " of %+.3f s", o->more);
    fm_str_puts(out, ".\n");
}

void fm_trace_compare_text(fm_str *out, const fm_trace_comparison *o)
{
    enum { TOP = 30 };
    put_rate(out, o);
    put_cause(out, o);
    fm_str_printf(out, "\n%-10s %-30s %10s %10s %10s %11s\n", "class", "mean of a call", "before",
                  "after", "change", "in all");
    for (int i = 0; i < o->n && i < TOP; i++) put_change(out, o, &o->change[i]);
    if (o->n > TOP) fm_str_printf(out, "and %d that weigh less\n", o->n - TOP);
}

/* --- JSON -------------------------------------------------------------------- */

static json_t *sample_json(const fm_moments *s)
{
    return s->n > 0 ? json_pack("{s:f, s:f}", "count", s->n, "mean_s", s->mean) : json_null();
}

static json_t *change_json(const fm_trace_change *c)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:o, s:o, s:f, s:s, s:b}", "class",
                          fm__class_text(&c->key), "name", c->key.name, "part", c->key.part,
                          "before", sample_json(&c->a), "after", sample_json(&c->b), "more_s",
                          c->more, "kind", kind_text(c), "is_part", c->is_part);
    if (c->kind <= FM_CHANGE_CALLS) json_object_set_new(o, "p", json_real(c->p));
    return o;
}

void fm_trace_compare_json(fm_str *out, const fm_trace_comparison *c)
{
    json_t *changes = json_array();
    for (int i = 0; i < c->n; i++) json_array_append_new(changes, change_json(&c->change[i]));
    json_t *cause = c->cause < 0 ? json_null() : change_json(&c->change[c->cause]);
    json_t *o =
        json_pack("{s:f, s:f, s:f, s:o, s:o}", "rows_per_s_before", c->rate_a, "rows_per_s_after",
                  c->rate_b, "more_s", c->more, "cause", cause, "changes", changes);
    fm_json_print(out, o);
}
