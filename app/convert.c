/* SPDX-License-Identifier: Apache-2.0 */
/* fathom convert: a checkpoint with smaller weights. */
#include "llm/convert/convert.h"

#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/knobs.h"
#include "commands.h"
#include "default_model.h"
#include "fathom/fathom.h"
#include "llm/load/model_path.h"

typedef struct {
    char       *quantize;
    int         experts_only, quiet;
    const char *model, *out; /* borrowed from the command line */
} convert_options;

#define K(KIND, field, ...) FM_KNOB(convert_options, KIND, field, __VA_ARGS__)

static const fm_knob knobs[] = {
    K(WORD, quantize, "quantize", NULL, 0, 0, "TYPE", "int4 or fp8"),
    K(FLAG, experts_only, "experts-only", NULL, 0, 0, NULL, "quantise routed experts alone"),
    K(FLAG, quiet, "quiet", NULL, 0, 0, NULL, "no progress bar"),
};
enum { N_KNOB = sizeof knobs / sizeof knobs[0] };

static const char about[] =
    "Writes MODEL, BF16 or FP8, to the folder OUT with its linear layers in 4 or 8 bits.  MODEL is "
    "a "
    "folder, a name in the Hugging Face cache, or fathom-tiny.  Embeddings, norms and routers keep "
    "their type; the head does, too, with fp8 and with --experts-only."
    "\v"
    "int4: -8 ... 7 with one BF16 scale for each 32 of a row, as compressed-tensors packs it.  "
    "fp8: "
    "e4m3 with one scale for each 128 x 128.  Values are rounded to the nearest with the better of "
    "two scales.  A conversion that was cut off goes on when the command is given again; OUT is a "
    "model only when it is complete.";

static fm_status read_command_line(convert_options *o, int argc, char **argv)
{
    const fm_arg_table table = {"What to make:", knobs, N_KNOB, o};
    fm_args            a     = {.command = "convert", .usage = "MODEL OUT", .n_word = 2, .about = about,
                                .table = &table, .n_table = 1};
    FM_TRY(fm_knobs_init(knobs, N_KNOB, o));
    const fm_status rc = fm_args_parse(&a, argc, argv);
    if (rc == FM_OK) o->model = a.given[0], o->out = a.given[1];
    fm_args_fini(&a);
    FM_TRY(rc);
    if (!o->quantize) return fm_fail(FM_E_ARG, "to what? give --quantize int4 or fp8");
    if (strcmp(o->quantize, "int4") != 0 && strcmp(o->quantize, "fp8") != 0)
        return fm_fail(FM_E_ARG, "--quantize %s is neither int4 nor fp8", o->quantize);
    return FM_OK;
}

/* By the names that other commands take. */
static fm_status find_model(fm_model_path *out, const char *asked)
{
    fm_options *o  = NULL;
    fm_status   rc = fm_options_create(&o);
    if (rc == FM_OK) rc = fm_options_set(o, "model-path", asked);
    if (rc == FM_OK) rc = fm_named_model(o);
    if (rc == FM_OK) rc = fm_model_path_find(out, o->model_path);
    fm_options_destroy(o);
    if (rc == FM_OK && !*out->dir)
        return fm_fail(FM_E_ARG, "%s is a built-in shape: it has no weights to convert", asked);
    return rc;
}

static fm_status convert(const convert_options *o, fm_convert_report *report)
{
    fm_model_path model;
    FM_TRY(find_model(&model, o->model));
    return fm_convert(
        &(fm_convert_request){.model = model.dir,
                              .out   = o->out,
                              .type = strcmp(o->quantize, "fp8") ? FM_CONVERT_INT4 : FM_CONVERT_FP8,
                              .experts_only  = o->experts_only,
                              .show_progress = !o->quiet},
        report);
}

int fm_cmd_convert(int argc, char **argv)
{
    convert_options   o = {0};
    fm_convert_report report;
    fm_status         rc = read_command_line(&o, argc, argv);
    if (rc == FM_OK) rc = convert(&o, &report);
    if (rc != FM_OK) {
        fm_knobs_fini(knobs, N_KNOB, &o);
        return fm_complain("convert", rc);
    }
    printf("%lld layers in %s, %.3f GB from %.3f GB", report.n_quantised, o.quantize,
           (double)report.bytes * 1e-9, (double)report.bytes_in * 1e-9);
    if (report.n_resumed) printf("; %d files were there already", report.n_resumed);
    printf("\n");
    fm_knobs_fini(knobs, N_KNOB, &o);
    return FM_EXIT_OK;
}
