/* SPDX-License-Identifier: Apache-2.0 */
#include "client_flags.h"

#include <stdio.h>
#include <string.h>

#include "args.h"
#include "bench_online.h"
#include "comm/world.h"
#include "llm/options.h"
#include "llm/serve/serve.h"

static int is_client_option(const char *word)
{
    const fm_knob *const table[] = {fm_bench_knobs, fm_online_knobs};
    const int            n[]     = {fm_n_bench_knob, fm_n_online_knob};
    char                 name[96];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    if (fm_knob_find(fm_serve_knobs, fm_n_serve_knob, name) ||
        fm_knob_find(fm_engine_knobs, fm_n_engine_knob, name))
        return 0;
    for (int t = 0; t < 2; t++)
        if (fm_knob_find(table[t], n[t], name)) return 1;
    return 0;
}

void fm_divide_flags(fm_word_list *server, fm_word_list *client, const fm_word_list *given)
{
    int to_client = 0;
    for (int i = 0; i < given->n; i++) {
        const char *w = given->word[i];
        if (!strncmp(w, "--", 2)) to_client = is_client_option(w);
        fm_word_add(to_client ? client : server, w);
    }
}

fm_status fm_check_flags(const fm_word_list *given, const fm_knob *own, int n_own)
{
    const fm_arg_table tables[] = {
        {"", fm_bench_knobs, fm_n_bench_knob, NULL},
        {"", fm_online_knobs, fm_n_online_knob, NULL},
        {"", fm_engine_knobs, fm_n_engine_knob, NULL},
        {"", fm_world_knobs, fm_n_world_knob, NULL},
        {"", fm_serve_knobs, fm_n_serve_knob, NULL},
        {"", own, n_own, NULL},
    };
    if (given->n && given->word[0][0] != '-') return fm_args_stray(given->word[0]);
    return fm_args_spelling(tables, (int)(sizeof tables / sizeof tables[0]), given);
}
