/* SPDX-License-Identifier: Apache-2.0 */
/* Directives that are not blocks: names, directories, charge. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chem/input/state.h"

static fm_status read_name(fm__state *s)
{
    if (!fm__peek(&s->words)) return FM_OK; /* the deck's own name */
    FM_TRY(fm__need_text(&s->words, s->deck->name, sizeof s->deck->name, "the job's name"));
    return fm__need_end(&s->words);
}

fm_status fm__read_start(fm__state *s)
{
    s->deck->is_restart = 0;
    return read_name(s);
}

fm_status fm__read_restart(fm__state *s)
{
    s->deck->is_restart = 1;
    return read_name(s);
}

fm_status fm__read_title(fm__state *s)
{
    const char *word;
    s->title[0] = 0;
    while ((word = fm__next(&s->words))) {
        const size_t n = strlen(s->title);
        snprintf(s->title + n, sizeof s->title - n, "%s%s", n ? " " : "", word);
    }
    return FM_OK;
}

fm_status fm__read_echo(fm__state *s)
{
    s->deck->echo = 1;
    return fm__need_end(&s->words);
}

/* `dir` or `host:dir host:dir ...`; the first one counts, as for rank 0. */
static fm_status read_dir(fm__words *w, char dir[256])
{
    const char *word;
    FM_TRY(fm__need_word(w, &word, "a directory"));
    const char *colon = strchr(word, ':');
    const char *path  = colon ? colon + 1 : word;
    if (strlen(path) >= 256) return fm__bad(w, "the directory has more than 255 characters");
    memcpy(dir, path, strlen(path) + 1);
    while (fm__next(w)) {
    }
    return FM_OK;
}

fm_status fm__read_permanent_dir(fm__state *s)
{
    s->deck->permanent_dir_line = fm__line(&s->words);
    return read_dir(&s->words, s->deck->permanent_dir);
}

fm_status fm__read_scratch_dir(fm__state *s) { return read_dir(&s->words, s->deck->scratch_dir); }

fm_status fm__read_charge(fm__state *s)
{
    double charge;
    FM_TRY(fm__need_real(&s->words, &charge, "the molecule's charge"));
    if (charge != nearbyint(charge) || fabs(charge) > 1000)
        return fm__bad(&s->words, "charge %g is not a whole number of electrons", charge);
    s->charge = charge;
    return fm__need_end(&s->words);
}

fm_status fm__read_ignored(fm__state *s)
{
    while (fm__next(&s->words)) {
    }
    return FM_OK;
}
