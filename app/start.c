/* SPDX-License-Identifier: Apache-2.0 */
#include "start.h"

#include <stdio.h>

#include "base/log.h"
#include "comm/world.h"
#include "model_facts.h"
#include "output_file.h"
#include "self_launch.h"

static void show_plan(const fm_plan *plan, int n_plan, const char *model, const char *ranks)
{
    fm_str table = {0};
    for (int i = 0; i < n_plan; i++) fm_plan_print(&plan[i], &table);
    fprintf(stderr, "%s\n%s%s", model, ranks ? ranks : "", table.text ? table.text : "");
    fm_str_fini(&table);
}

static void print_report(const char *text)
{
    fm_log_lines(text); /* at the end, when no reader may be left */
}

fm_status fm_start_engine(fm_engine **out, fm_options *o, fm_args *a)
{
    if (!o->model_path) return fm_fail(FM_E_ARG, "which model? give --model-path");
    FM_TRY(fm_model_check_context(o));
    FM_TRY(fm_output_check("trace", o->trace));
    FM_TRY(fm_self_launch(o, a));
    const fm_engine_hooks hooks = {o->quiet ? NULL : show_plan, print_report};
    if (!o->quiet && a->notes.text && fm_world_launched_as() == 0) fputs(a->notes.text, stderr);
    return fm_engine_open_shown(out, o, &hooks);
}
