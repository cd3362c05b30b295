/* SPDX-License-Identifier: Apache-2.0 */
/* fathom route: one address in front of many servers. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "base/log.h"
#include "base/str.h"
#include "commands.h"
#include "listening.h"
#include "llm/route/route.h"

enum { EXIT_TOLD_TWICE = 128 + 15 };

static const char about[] =
    "Passes requests on to workers (fathom serve, or other servers with the same API) and picks "
    "for each the worker that will be done first.  If a worker dies or hangs in the middle of a "
    "stream, another one continues it and the client does not notice.  GET /workers lists workers, "
    "POST and DELETE /workers change the list, SIGHUP reads --worker-file again.  On SIGTERM or "
    "SIGINT requests under way end first; after a second one they are cut off.";

typedef struct {
    fm_route_options route;
    fm_args          args;
} command;

static void add_text(fm_str *list, const char *text) { fm_str_add(list, text, strlen(text) + 1); }

static fm_status stored(void *ctx, const fm_knob *k, const char *value)
{
    fm_route_options *o = ctx;
    if (!strcmp(k->name, "api-key")) add_text(&o->keys, value);
    if (!strcmp(k->name, "worker") || !strcmp(k->name, "worker-urls")) add_text(&o->urls, value);
    return FM_OK;
}

static fm_status add_origin(fm_route_options *o, const char *word)
{
    const fm_knob *k    = fm_knob_find(fm_route_knobs, fm_n_route_knob, "cors-origins");
    fm_str         list = {0};
    fm_str_printf(&list, "%s,%s", o->cors_origins, word);
    const fm_status rc = fm_knob_set(k, o, list.text);
    fm_str_fini(&list);
    return rc;
}

/* --worker-urls and --cors-allowed-origins take words up to the next option. */
static fm_status take_word(void *ctx, const char *after, const char *word)
{
    fm_route_options *o = ctx;
    if (after && !strcmp(after, "cors-origins")) return add_origin(o, word);
    if (!after || strcmp(after, "worker-urls"))
        return strstr(word, "://") ? fm_fail(FM_E_ARG, "a worker is named by --worker %s", word)
                                   : fm_args_stray(word);
    add_text(&o->urls, word);
    return FM_OK;
}

/* What the environment gave is not seen by stored(). */
static void take_environment(fm_route_options *o)
{
    if (o->worker_url) add_text(&o->urls, o->worker_url);
    if (o->api_key) add_text(&o->keys, o->api_key);
}

static fm_status read_command_line(command *c, int argc, char **argv)
{
    FM_TRY(fm_knobs_init(fm_route_knobs, fm_n_route_knob, &c->route));
    take_environment(&c->route);
    const fm_arg_table tables[] = {{"The router:", fm_route_knobs, fm_n_route_knob, &c->route}};
    c->args                     = (fm_args){.command = "route",
                                            .about   = about,
                                            .table   = tables,
                                            .n_table = 1,
                                            .stored  = stored,
                                            .word    = take_word,
                                            .ctx     = &c->route};
    return fm_args_parse(&c->args, argc, argv);
}

static fm_status run(command *c, fm_route **r)
{
    const fm_route_hooks hooks = {.ready  = fm_listening_ready,
                                  .access = fm_listening_lines,
                                  .say    = fm_listening_lines,
                                  .ctx    = "route"};
    if (c->args.notes.len) fm_log_lines(c->args.notes.text);
    fm_listening_raise_file_limit();
    FM_TRY(fm_route_create(r, &c->route, &hooks));
    fm_log_start_writer();
    const fm_status rc = fm_route_run(*r);
    fm_log_stop_writer();
    return rc;
}

int fm_cmd_route(int argc, char **argv)
{
    command   c = {0};
    fm_route *r = NULL;

    fm_status rc = read_command_line(&c, argc, argv);
    if (rc == FM_OK) rc = run(&c, &r);
    if (rc == FM_E_CANCELLED) _exit(EXIT_TOLD_TWICE);
    const int status = rc == FM_OK ? FM_EXIT_OK : fm_complain("route", rc);
    fm_route_destroy(r);
    fm_args_fini(&c.args);
    fm_str_fini(&c.route.keys);
    fm_str_fini(&c.route.urls);
    fm_knobs_fini(fm_route_knobs, fm_n_route_knob, &c.route);
    return status;
}
