/* SPDX-License-Identifier: Apache-2.0 */
/* fathom serve: the engine behind HTTP. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "args.h"
#include "base/log.h"
#include "base/str.h"
#include "commands.h"
#include "default_model.h"
#include "listening.h"
#include "llm/serve/serve.h"
#include "self_launch.h"
#include "start.h"

enum { EXIT_TOLD_TWICE = 128 + 15 };

static const char about[] =
    "Serves a model over HTTP with OpenAI's API (/v1/chat/completions, "
    "/v1/completions, /v1/models), SGLang's "
    "(/generate), Anthropic's (/v1/messages), Prometheus metrics at "
    "/metrics and a page to chat on at /.  SIGTERM, SIGINT and "
    "SIGHUP let what is under way end; a second SIGTERM or SIGINT does not.";

typedef struct {
    fm_options      *engine;
    fm_serve_options serve;
    fm_args          args;
    int              has_word; /* a model without --model-path */
} command;

/* `fathom serve MODEL`, as in `vllm serve MODEL`. */
static fm_status take_word(void *ctx, const char *after, const char *word)
{
    command *c = ctx;
    (void)after;
    if (c->has_word++) return fm_fail(FM_E_ARG, "\"%s\" is one too many: give one MODEL", word);
    return fm_options_set(c->engine, "model-path", word);
}

static fm_status read_command_line(command *c, int argc, char **argv)
{
    FM_TRY(fm_options_create(&c->engine));
    FM_TRY(fm_knobs_init(fm_serve_knobs, fm_n_serve_knob, &c->serve));
    const fm_arg_table tables[] = {
        {"The server:", fm_serve_knobs, fm_n_serve_knob, &c->serve},
        {"The engine:", fm_engine_knobs, fm_n_engine_knob, c->engine},
        {"Its ranks:", fm_world_knobs, fm_n_world_knob, &c->engine->world},
    };
    c->args = (fm_args){.command = "serve",
                        .usage   = "[MODEL]",
                        .about   = about,
                        .table   = tables,
                        .n_table = 3,
                        .word    = take_word,
                        .ctx     = c};
    FM_TRY(fm_args_parse(&c->args, argc, argv));
    if (c->engine->speculative_simulate_accept_length > 0)
        return fm_fail(FM_E_ARG, "--speculative-simulate-accept-length is for fathom bench: a "
                                 "server does not send tokens of drafts that were not verified");
    return FM_OK;
}

/* A signal to all ranks: the leader lets what is under way end, and says so. */
static fm_status follow(fm_engine *e)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    return fm_engine_follow(e);
}

static fm_status run(command *c, fm_serve **s, fm_engine **e)
{
    const fm_serve_hooks hooks = {.ready  = fm_listening_ready,
                                  .access = fm_listening_lines,
                                  .batch  = c->engine->quiet ? NULL : fm_listening_lines,
                                  .ending = fm_listening_lines,
                                  .ctx    = "serve"};
    FM_TRY(fm_self_launch(c->engine, &c->args));
    fm_listening_raise_file_limit();
    FM_TRY(fm_default_model(c->engine));
    FM_TRY(fm_serve_create(s, &c->serve, c->engine, &hooks));
    FM_TRY(fm_start_engine(e, c->engine, &c->args));
    if (!fm_engine_is_leader(*e)) return follow(*e);
    fm_log_start_writer();
    const fm_status rc = fm_serve_run(*s, *e);
    fm_log_stop_writer();
    return rc;
}

int fm_cmd_serve(int argc, char **argv)
{
    command    c = {0};
    fm_serve  *s = NULL;
    fm_engine *e = NULL;

    fm_status rc = read_command_line(&c, argc, argv);
    if (rc == FM_OK) rc = run(&c, &s, &e);
    if (rc == FM_E_CANCELLED) _exit(EXIT_TOLD_TWICE);
    const int status = rc == FM_OK ? FM_EXIT_OK : fm_complain("serve", rc);
    fm_serve_destroy(s);
    fm_engine_close(e);
    fm_args_fini(&c.args);
    fm_knobs_fini(fm_serve_knobs, fm_n_serve_knob, &c.serve);
    fm_options_destroy(c.engine);
    return status;
}
