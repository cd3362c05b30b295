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

static fm_status take_word(void *ctx, const char *after, const char *word)
{
    convert_options *o = ctx;
    (void)after;
    if (!o->model)
        o->model = word;
    else if (!o->out)
        o->out = word;
    else
        return fm_fail(FM_E_ARG, "\"%s\" stands behind MODEL and OUT", word);
    return FM_OK;
}

static fm_status read_command_line(convert_options *o, int argc, char **argv)
{
    const int          n       = sizeof knobs / sizeof knobs[0];
    const fm_arg_table table[] = {{"What to make:", knobs, n, o}};
    fm_args            a       = {.command = "convert",
                                  .usage   = "MODEL OUT",
                                  .about   = about,
                                  .table   = table,
                                  .n_table = 1,
                                  .word    = take_word,
                                  .ctx     = o};
    FM_TRY(fm_knobs_init(knobs, n, o));
    const fm_status rc = fm_args_parse(&a, argc, argv);
    fm_str_fini(&a.notes);
    FM_TRY(rc);
    if (!o->model || !o->out) return fm_fail(FM_E_ARG, "from where to where? give MODEL and OUT");
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
        fm_knobs_fini(knobs, sizeof knobs / sizeof knobs[0], &o);
        return fm_complain("convert", rc);
    }
    printf("%lld layers in %s, %.3f GB from %.3f GB", report.n_quantised, o.quantize,
           (double)report.bytes * 1e-9, (double)report.bytes_in * 1e-9);
    if (report.n_resumed) printf("; %d files were there already", report.n_resumed);
    printf("\n");
    fm_knobs_fini(knobs, sizeof knobs / sizeof knobs[0], &o);
    return FM_EXIT_OK;
}
