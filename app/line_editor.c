/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

enum { HISTORY_LINES = 1000 };

struct fm_line_editor {
    EditLine   *edit;
    History    *history;
    const char *prompt;
    fm_str      file; /* "": history is not kept */
    fm_str      line;
};

static const char *show_prompt(EditLine *edit)
{
    fm_line_editor *l = NULL;
    el_get(edit, EL_CLIENTDATA, &l);
    return l->prompt;
}

/* Every directory above the file; what cannot be made shows when saving. */
static void make_parents(const char *file)
{
    char *path = strdup(file);
    for (char *s = path ? strchr(path + 1, '/') : NULL; s; s = strchr(s + 1, '/')) {
        *s = 0;
        mkdir(path, 0700);
        *s = '/';
    }
    free(path);
}

static void name_history_file(fm_str *out)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state)
        fm_str_printf(out, "%s/fathom/history", state);
    else if (home && *home)
        fm_str_printf(out, "%s/.local/state/fathom/history", home);
}

fm_status fm_line_editor_open(fm_line_editor **out, const char *prompt)
{
    setlocale(LC_CTYPE, ""); /* for the width of what is typed; numbers keep their dot */
    fm_line_editor *l = calloc(1, sizeof *l);
    if (!l) return fm_fail(FM_E_OOM, "line editor");
    l->prompt  = prompt;
    l->edit    = el_init("fathom", stdin, stdout, stderr);
    l->history = history_init();
    if (!l->edit || !l->history) {
        fm_line_editor_close(l);
        return fm_fail(FM_E_IO, "this terminal cannot be used for a chat");
    }
    HistEvent ev;
    history(l->history, &ev, H_SETSIZE, HISTORY_LINES);
    history(l->history, &ev, H_SETUNIQUE, 1);
    name_history_file(&l->file);
    if (l->file.len) history(l->history, &ev, H_LOAD, l->file.text);

    el_set(l->edit, EL_CLIENTDATA, l);
    el_set(l->edit, EL_PROMPT, show_prompt);
    el_set(l->edit, EL_EDITOR, "emacs");
    el_set(l->edit, EL_HIST, history, l->history);
    el_set(l->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(l->edit, NULL); /* the user's ~/.editrc */
    *out = l;
    return FM_OK;
}

void fm_line_editor_close(fm_line_editor *l)
{
    if (!l) return;
    HistEvent ev;
    if (l->history && l->file.len) {
        make_parents(l->file.text);
        history(l->history, &ev, H_SAVE, l->file.text);
    }
    if (l->history) history_end(l->history);
    if (l->edit) el_end(l->edit);
    fm_str_fini(&l->file);
    fm_str_fini(&l->line);
    free(l);
}

fm_line fm_line_editor_read(fm_line_editor *l, const char **text)
{
    int n             = 0;
    errno             = 0;
    const char *typed = el_gets(l->edit, &n);
    if (!typed || n < 0) return errno == EINTR ? FM_LINE_INTERRUPTED : FM_LINE_END;
    if (n == 0) return FM_LINE_END;

    HistEvent ev;
    if (typed[0] != '\n') history(l->history, &ev, H_ENTER, typed);
    fm_str_clear(&l->line);
    fm_str_add(&l->line, typed, (size_t)n - (typed[n - 1] == '\n'));
    *text = l->line.text;
    return FM_LINE;
}
