/* SPDX-License-Identifier: Apache-2.0 */
/* fathom run: one prompt from the command line or stdin, or a chat. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "commands.h"
#include "default_model.h"
#include "model_facts.h"
#include "self_launch.h"
#include "start.h"
#include "talk.h"

enum { MAX_STDIN = 64 << 20, EXIT_INTERRUPTED = 130 };

static const char about[] =
    "Answers PROMPT, or what comes on standard input, or chats when that is a terminal.  The "
    "prompt is one user turn in the model's own chat format.";

typedef struct {
    fm_options     *engine;
    fm_talk_options talk;
    fm_args         args;
    fm_str          prompt;
    char          **stop;
    int             n_stop;
} command;

static fm_status take_word(void *ctx, const char *after, const char *word)
{
    command *c = ctx;
    (void)after;
    if (c->prompt.len) fm_str_puts(&c->prompt, " ");
    fm_str_puts(&c->prompt, word);
    return FM_OK;
}

static fm_status take_option(void *ctx, const fm_knob *k, const char *value)
{
    command *c = ctx;
    if (strcmp(k->name, "stop")) return FM_OK;
    char **grown = realloc(c->stop, (size_t)(c->n_stop + 1) * sizeof *grown);
    if (grown) c->stop = grown;
    char *copy = grown ? strdup(value) : NULL;
    if (!copy) return fm_fail(FM_E_OOM, "stop strings");
    c->stop[c->n_stop++] = copy;
    return FM_OK;
}

static fm_status read_command_line(command *c, int argc, char **argv)
{
    FM_TRY(fm_options_create(&c->engine));
    FM_TRY(fm_knobs_init(fm_talk_knobs, fm_n_talk_knob, &c->talk));
    const fm_arg_table tables[] = {
        {"The answer:", fm_talk_knobs, fm_n_talk_knob, &c->talk},
        {"The engine:", fm_engine_knobs, fm_n_engine_knob, c->engine},
        {"Its ranks:", fm_world_knobs, fm_n_world_knob, &c->engine->world},
    };
    c->args            = (fm_args){.command = "run",
                                   .usage   = "[PROMPT...]",
                                   .about   = about,
                                   .table   = tables,
                                   .n_table = 3,
                                   .stored  = take_option,
                                   .word    = take_word,
                                   .ctx     = c};
    FM_TRY(fm_args_parse(&c->args, argc, argv));
    if (c->engine->speculative_simulate_accept_length > 0)
        return fm_fail(FM_E_ARG, "--speculative-simulate-accept-length is for fathom bench: drafts "
                                 "that were not verified would change the answer");
    if (c->engine->max_running_requests == 0) c->engine->max_running_requests = 1;
    return FM_OK;
}

static fm_status read_stdin(fm_str *out)
{
    char   block[65536];
    size_t n;
    while ((n = fread(block, 1, sizeof block, stdin)) > 0) {
        fm_str_add(out, block, n);
        if (out->len > MAX_STDIN)
            return fm_fail(FM_E_ARG, "the prompt on standard input is longer than %d MB",
                           MAX_STDIN >> 20);
    }
    if (ferror(stdin)) return fm_fail(FM_E_IO, "standard input: %s", strerror(errno));
    if (out->len && out->text[out->len - 1] == '\n') out->text[--out->len] = 0;
    return FM_OK;
}

static fm_status check_prompt(const fm_str *prompt)
{
    if (!prompt->len) return fm_fail(FM_E_ARG, "the prompt is empty");
    if (memchr(prompt->text, 0, prompt->len))
        return fm_fail(FM_E_ARG, "the prompt contains a NUL byte");
    return FM_OK;
}

/* Of many ranks only one has the standard input, and which is not known yet. */
static int is_alone(const fm_options *o)
{
    return o->tp_size * o->pp_size * o->dp_size == 1;
}

static fm_status run(command *c, fm_engine **e)
{
    const int chat = !c->prompt.len && isatty(STDIN_FILENO);
    FM_TRY(fm_self_launch(c->engine, &c->args)); /* before standard input is read */
    FM_TRY(fm_default_model(c->engine));
    FM_TRY(fm_model_need_tokenizer(c->engine, "run"));
    if (!chat && !c->prompt.len) FM_TRY(read_stdin(&c->prompt));
    if (!chat && is_alone(c->engine)) FM_TRY(check_prompt(&c->prompt)); /* before loading */
    FM_TRY(fm_start_engine(e, c->engine, &c->args));
    if (!fm_engine_is_leader(*e)) return fm_engine_follow(*e);
    if (!chat) FM_TRY(check_prompt(&c->prompt));
    fm_talk_catch_interrupt();

    fm_talk   t;
    fm_status rc = fm_talk_init(&t, *e, &c->talk, c->stop, c->n_stop);
    if (rc == FM_OK && chat)
        rc = fm_talk_interactive(&t);
    else if (rc == FM_OK && c->talk.raw)
        rc = fm_talk_raw(&t, c->prompt.text, c->prompt.len);
    else if (rc == FM_OK)
        rc = fm_talk_say(&t, c->prompt.text);
    fm_talk_fini(&t);
    return rc;
}

int fm_cmd_run(int argc, char **argv)
{
    command    c = {0};
    fm_engine *e = NULL;

    fm_status rc = read_command_line(&c, argc, argv);
    if (rc == FM_OK) rc = run(&c, &e);
    const int status = rc == FM_OK            ? FM_EXIT_OK
                       : rc == FM_E_CANCELLED ? EXIT_INTERRUPTED
                                              : fm_complain("run", rc);
    fm_engine_close(e);
    for (int i = 0; i < c.n_stop; i++) free(c.stop[i]);
    free(c.stop);
    fm_str_fini(&c.prompt);
    fm_args_fini(&c.args);
    fm_knobs_fini(fm_talk_knobs, fm_n_talk_knob, &c.talk);
    fm_options_destroy(c.engine);
    return status;
}
