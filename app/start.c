/* SPDX-License-Identifier: Apache-2.0 */
#include "start.h"

#include <stdio.h>

static void settle_ranks(fm_options *o, fm_args *a)
{
    const struct {
        const char *name;
        int64_t    *size;
    } layout[] = {
        {"tp", &o->tp_size}, {"pp", &o->pp_size}, {"dp", &o->dp_size}, {"ep", &o->ep_size}};
    for (size_t i = 0; i < sizeof layout / sizeof layout[0]; i++) {
        if (*layout[i].size <= 1) continue;
        fm_str_printf(&a->notes, "fathom %s: --%s-size %lld: this build runs one rank\n",
                      a->command, layout[i].name, (long long)*layout[i].size);
        *layout[i].size = 1;
    }
}

static void show_plan(const fm_plan *plan, const char *model)
{
    fm_str table = {0};
    fm_plan_print(plan, &table);
    fprintf(stderr, "%s\n%s", model, table.text ? table.text : "");
    fm_str_fini(&table);
}

fm_status fm_start_engine(fm_engine **out, fm_options *o, fm_args *a)
{
    if (!o->model_path) return fm_fail(FM_E_ARG, "which model? give --model-path");
    settle_ranks(o, a);
    if (!o->quiet && a->notes.text) fputs(a->notes.text, stderr);
    return fm_engine_open_shown(out, o, o->quiet ? NULL : show_plan);
}
