/* SPDX-License-Identifier: Apache-2.0 */
/* fathom verify: is this build, on this machine, still the model?  Compares
 * with golden data and gives a verdict that can be attached to a result. */
#include "verify.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/cpu.h"
#include "commands.h"
#include "default_model.h"
#include "start.h"

#define K(KIND, field, ...) FM_KNOB(fm_verify_options, KIND, field, __VA_ARGS__)

static const fm_knob knobs[] = {
    K(WORD, golden, "golden", NULL, 0, 0, "FILE", "prompts, greedy tokens and logits of the model"),
    K(WORD, tokenizer_golden, "tokenizer-golden", NULL, 0, 0, "FILE",
      "texts and their encodings; needs --tokenizer-path and no model"),
    K(FLAG, json, "json", NULL, 0, 0, NULL, "print the result as JSON"),
};
enum { N_KNOB = sizeof knobs / sizeof knobs[0] };

static const char about[] =
    "Compares a model's logits and greedy tokens, or a tokenizer's encodings, with golden data.  "
    "Exits 0 only if everything is within tolerance."
    "\v"
    "Tolerances: with --dtype float32 a relative logit error of 1e-4 and all tokens equal.  "
    "Otherwise twice the BF16 error the golden file lists, and at most 2 fewer argmax matches.  If "
    "the file lists routes, tokens go to the experts listed, and where the router itself would "
    "choose others, experts or groups of experts must nearly tie.  If not, or on a GPU or several "
    "ranks, a case beyond the bound that looks like a router's near-tie is reported and excepted.";

static const char *const verdict_name[] = {"ok", "router near-tie", "FAIL"};

typedef struct {
    fm_options       *engine;
    fm_verify_options opt;
    fm_args           args;
} command;

static fm_status read_command_line(command *c, int argc, char **argv)
{
    FM_TRY(fm_options_create(&c->engine));
    FM_TRY(fm_knobs_init(knobs, N_KNOB, &c->opt));
    const fm_arg_table tables[] = {
        {"What to compare with:", knobs, N_KNOB, &c->opt},
        {"The engine:", fm_engine_knobs, fm_n_engine_knob, c->engine},
        {"Its ranks:", fm_world_knobs, fm_n_world_knob, &c->engine->world},
    };
    c->args = (fm_args){.command = "verify", .about = about, .table = tables, .n_table = 3};
    FM_TRY(fm_args_parse(&c->args, argc, argv));
    FM_TRY(fm_named_model(c->engine));
    if (!c->opt.golden && !c->opt.tokenizer_golden)
        return fm_fail(FM_E_ARG, "compare with what? give --golden or --tokenizer-golden");
    if (c->engine->speculative_simulate_accept_length > 0)
        return fm_fail(FM_E_ARG, "--speculative-simulate-accept-length is for fathom bench: tokens of "
                                 "drafts that are accepted unseen cannot be verified");
    if (c->opt.tokenizer_golden && !c->engine->tokenizer_path && !c->engine->model_path)
        return fm_fail(FM_E_ARG, "which tokenizer? give --tokenizer-path");
    return FM_OK;
}

static int is_exact(const fm_options *o)
{
    return !strcmp(o->dtype, "float32") || !strcmp(o->dtype, "float");
}

static void print_table(const command *c, const fm_golden *g, const fm_verify_case *v)
{
    int n_tie = 0, n_fail = 0, n_flip = 0, n_close = 0, n_odd = 0, n_tied = 0, n_misrouted = 0;
    printf("model %s, dtype %s, isa %s, fathom %s\n", c->engine->model_path, c->engine->dtype,
           fm_isa_name(fm_cpu_isa()), FM_VERSION);
    printf("%4s %7s %10s %10s %10s %8s %8s  %s\n", "case", "prompt", "err first", "err last",
           "bound", "argmax", "greedy", "verdict");
    for (int i = 0; i < g->n; i++) {
        const int n = g->item[i].n_greedy;
        printf("%4d %7d %10.2e %10.2e %10.2e %5d/%-2d %5d/%-2d  %s\n", i, g->item[i].n_prompt,
               v[i].err_first, v[i].err_last, v[i].bound, v[i].n_argmax, n, v[i].n_greedy, n,
               verdict_name[v[i].verdict]);
        n_flip += n - v[i].n_argmax;
        n_close += v[i].n_close;
        n_odd += !v[i].is_finite;
        n_tied += v[i].n_tied;
        n_misrouted += v[i].n_misrouted;
        n_tie += v[i].verdict == FM_VERDICT_NEAR_TIE;
        n_fail += v[i].verdict == FM_VERDICT_FAIL;
    }
    if (n_flip)
        printf("argmax mismatches: %d, of these %d with a margin below twice the logit error\n",
               n_flip, n_close);
    if (n_odd) printf("cases with logits that are NaN or infinite: %d\n", n_odd);
    if (n_tied + n_misrouted)
        printf("routing: %d near-ties went the other way, %d choices are wrong; errors are with the "
               "golden experts\n", n_tied, n_misrouted);
    printf("verdict: %s (%d of %d within tolerance, %d of these router near-ties)\n",
           n_fail ? "fail" : "pass", g->n - n_fail, g->n, n_tie);
}

/* JSON has no NaN: the error of logits that are not finite is null. */
static json_t *error_json(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static void print_json(const command *c, const fm_golden *g, const fm_verify_case *v)
{
    int     n_fail = 0;
    json_t *cases  = json_array();
    for (int i = 0; i < g->n; i++) {
        n_fail += v[i].verdict == FM_VERDICT_FAIL;
        json_array_append_new(
            cases, json_pack("{s:i, s:i, s:o, s:o, s:b, s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s}",
                             "index", i, "prompt_tokens", g->item[i].n_prompt, "rel_err_first",
                             error_json(v[i].err_first), "rel_err_last", error_json(v[i].err_last),
                             "finite", v[i].is_finite, "bound", v[i].bound, "tokens",
                             g->item[i].n_greedy, "argmax_match", v[i].n_argmax, "argmax_needed",
                             v[i].need_argmax, "argmax_close_mismatch", v[i].n_close,
                             "greedy_match", v[i].n_greedy, "router_near_ties", v[i].n_tied,
                             "router_mistakes", v[i].n_misrouted, "verdict", verdict_name[v[i].verdict]));
    }
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:s}", "model", c->engine->model_path, "golden",
                  c->opt.golden, "dtype", c->engine->dtype, "isa", fm_isa_name(fm_cpu_isa()),
                  "version", FM_VERSION, "cases", cases, "verdict", n_fail ? "fail" : "pass");
    FM_BUG_UNLESS(o != NULL);
    json_dumpf(o, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(o);
}

/* Unless an option says otherwise, activations are quantised as in the reference: a golden file of
 * another engine's plain arithmetic says nothing and has them as they are. */
static fm_status compute_as(const fm_golden *g, fm_options *o)
{
    if (strcmp(o->fp8_activations, "auto")) return FM_OK;
    return fm_options_set(o, "fp8-activations", g->fp8_activations ? "on" : "off");
}

static fm_status verify_model(command *c, int *passed)
{
    fm_status       rc = FM_OK;
    fm_engine      *e  = NULL;
    fm_golden       g  = {0};
    fm_verify_case *v  = NULL;

    FM_GO(fm_golden_load(&g, c->opt.golden));
    FM_GO(compute_as(&g, c->engine));
    c->engine->skip_tokenizer_init = 1;
    FM_GO(fm_start_engine(&e, c->engine, &c->args));
    if (!fm_engine_is_leader(e)) {
        rc = fm_engine_follow(e);
        goto out;
    }
    FM_GO(fm_golden_check(&g, c->opt.golden, fm_engine_config(e)));
    if (!(v = calloc((size_t)g.n, sizeof *v))) FM_GO(fm_fail(FM_E_OOM, "golden cases"));
    FM_GO(fm_verify_model(e, &g, is_exact(c->engine), v));
    (c->opt.json ? print_json : print_table)(c, &g, v);
    for (int i = 0; i < g.n; i++)
        if (v[i].verdict == FM_VERDICT_FAIL) *passed = 0;
out:
    free(v);
    fm_golden_fini(&g);
    fm_engine_close(e);
    return rc;
}

static fm_status verify(command *c, int *passed)
{
    if (c->opt.tokenizer_golden) {
        const fm_options *o       = c->engine;
        int               n_wrong = 0;
        FM_TRY(fm_verify_tokenizer(o->tokenizer_path ? o->tokenizer_path : o->model_path,
                                   c->opt.tokenizer_golden, c->opt.json, &n_wrong));
        if (n_wrong) *passed = 0;
    }
    return c->opt.golden ? verify_model(c, passed) : FM_OK;
}

int fm_cmd_verify(int argc, char **argv)
{
    command c      = {0};
    int     passed = 1;

    fm_status rc = read_command_line(&c, argc, argv);
    if (rc == FM_OK) rc = verify(&c, &passed);
    const int status = rc != FM_OK ? fm_complain("verify", rc)
                       : passed    ? FM_EXIT_OK
                                   : FM_EXIT_FAILED;

    fm_args_fini(&c.args);
    fm_knobs_fini(knobs, N_KNOB, &c.opt);
    fm_options_destroy(c.engine);
    return status;
}
