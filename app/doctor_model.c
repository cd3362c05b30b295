/* SPDX-License-Identifier: Apache-2.0 */
/* Would a model load here, does it fit, and how long does loading take? */
#include "doctor.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fm_doctor_plan(fm_doctor_model *m, const fm_options *o, fm_world *w)
{
    m->is_asked = 1;
    m->rc       = fm_engine_plan(&m->planned, o, w);
    if (m->rc != FM_OK) snprintf(m->why, sizeof m->why, "%s", fm_why());
}

/* To a GPU weights are copied over its bus, which each rank has alone. */
static double upload_s(const fm_doctor_model *m, const fm_checkup_rank *r)
{
    const fm_plan *p       = &m->planned.plan[0];
    const int      is_host = strstr(p->where, "main memory") != NULL;
    if (is_host || m->planned.is_dummy || r->rates.gpu.upload.n == 0) return 0;
    return (double)p->weights / r->rates.gpu.upload.median;
}

/* Weights are read once and then written and read in memory while they are packed; ranks of a
 * machine share both rates.  Random weights are not read from files. */
void fm_doctor_expect(fm_doctor_model *m, const fm_checkup *c)
{
    enum { PASSES = 3 };
    if (!m->is_asked || m->rc != FM_OK) return;
    for (int h = 0; h < c->n_host; h++) {
        const fm_checkup_rank *r      = &c->rank[c->host[h].first];
        const double           bytes  = (double)m->planned.plan[0].weights * c->host[h].n_rank;
        const double           disk   = m->planned.is_dummy || r->rates.file.n == 0
                                            ? 0
                                            : fmin(bytes, r->file.total_bytes) / r->rates.file.median;
        const double           memory = r->rates.read.n ? PASSES * bytes / r->rates.read.median : 0;
        m->load_s                     = fmax(m->load_s, fmax(fmax(disk, memory), upload_s(m, r)));
        m->file_bytes                 = fmax(m->file_bytes, r->file.total_bytes);
    }
}

void fm_doctor_print_model(fm_str *out, const fm_doctor_model *m)
{
    if (!m->is_asked) return;
    if (m->rc != FM_OK) {
        fm_str_printf(out, "\nmodel: does not load here: %s\n", m->why);
        return;
    }
    fm_str_printf(out, "\nmodel %s fits:\n", m->planned.path.name);
    for (int i = 0; i < m->planned.n_plan; i++) fm_plan_print(&m->planned.plan[i], out);
    if (m->load_s > 0)
        fm_str_printf(out, "loading takes about %.2g s%s\n", m->load_s,
                      m->planned.is_dummy ? " (random weights)" : "");
}

void fm_doctor_model_json(fm_str *out, const fm_doctor_model *m)
{
    if (!m->is_asked) return;
    const fm_plan *p = &m->planned.plan[0];
    json_t        *o = json_pack("{s:b,s:s}", "fits", m->rc == FM_OK, "why", m->why);
    if (m->rc == FM_OK) {
        json_object_set_new(o, "name", json_string(m->planned.path.name));
        json_object_set_new(o, "weights_bytes", json_integer((json_int_t)p->weights));
        json_object_set_new(o, "workspace_bytes", json_integer((json_int_t)p->workspace));
        json_object_set_new(o, "kv_bytes", json_integer((json_int_t)p->kv));
        json_object_set_new(o, "max_tokens", json_integer((json_int_t)p->max_tokens));
        json_object_set_new(o, "load_s", json_real(m->load_s));
    }
    json_t *outer = json_pack("{s:o}", "model", o);
    char   *text  = json_dumps(outer, 0);
    FM_BUG_UNLESS(text != NULL);
    fm_str_puts(out, text);
    free(text);
    json_decref(outer);
}
