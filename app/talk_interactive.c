/* SPDX-License-Identifier: Apache-2.0 */
/* The chat in the terminal. */
#include <stdio.h>
#include <string.h>

#include "line_editor.h"
#include "talk.h"

static const char commands[] = "/reset          forget the conversation\n"
                               "/system TEXT    set the system message and start again\n"
                               "/help           this list\n"
                               "/quit           leave (also Ctrl-D)\n"
                               "Ctrl-C          stop the answer\n";

typedef enum { GO_ON, LEAVE } next;

static next obey(fm_talk *t, const char *line)
{
    if (!strcmp(line, "/quit") || !strcmp(line, "/exit")) return LEAVE;
    if (!strcmp(line, "/reset")) {
        fm_talk_reset(t, t->opt->system);
        puts("the conversation starts again");
    } else if (!strncmp(line, "/system", 7) && (line[7] == ' ' || !line[7])) {
        fm_talk_reset(t, line + 7 + strspn(line + 7, " "));
        puts("the conversation starts again");
    } else {
        if (strcmp(line, "/help")) printf("there is no command %s\n", line);
        fputs(commands, stdout);
    }
    return GO_ON;
}

/* A question that cannot be answered ends the turn, not the chat. */
static fm_status answer(fm_talk *t, const char *line)
{
    const fm_status rc = t->opt->raw ? fm_talk_raw(t, line, strlen(line)) : fm_talk_say(t, line);
    if (rc == FM_OK || rc == FM_E_CANCELLED) return FM_OK;
    if (rc != FM_E_ARG && rc != FM_E_FORMAT) return rc;
    printf("(%s)\n", fm_why());
    return FM_OK;
}

fm_status fm_talk_interactive(fm_talk *t)
{
    fm_line_editor *lines;
    const char     *line = NULL;
    fm_status       rc   = FM_OK;
    next            then = GO_ON;

    FM_TRY(fm_line_editor_open(&lines, "> "));
    puts("/help lists commands");
    while (rc == FM_OK && then == GO_ON) {
        const fm_line got = fm_line_editor_read(lines, &line);
        if (got != FM_LINE) putchar('\n'); /* the prompt's line ends here */
        if (got == FM_LINE_END) break;
        if (got == FM_LINE_INTERRUPTED) continue;
        if (line[0] == '/')
            then = obey(t, line);
        else if (line[0])
            rc = answer(t, line);
    }
    fm_line_editor_close(lines);
    return rc;
}
