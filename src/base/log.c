/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log_writer.h"
#include "fathom/observe.h"

static const char *const level_name[] = {"error", "warn", "info", "debug"};

typedef struct {
    char         room[16]; /* "" = every room */
    fm_log_level level;
} rule;

static fm_log_fn     *listener; /* NULL: stderr */
static void          *listener_ctx;
static rule           rules[16];
static int            n_rule;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int level_of(const char *word, size_t len, fm_log_level *out)
{
    for (int i = 0; i < 4; i++)
        if (strlen(level_name[i]) == len && !strncmp(word, level_name[i], len)) {
            *out = (fm_log_level)i;
            return 1;
        }
    return 0;
}

/* "info,kv=debug" -> rules; words that make no sense are passed over. */
static void read_rules(void)
{
    rules[n_rule++] = (rule){"", FM_LOG_WARN};
    const char *s   = getenv("FM_LOG");
    while (s && *s && n_rule < 16) {
        const size_t len = strcspn(s, ",");
        const char  *eq  = memchr(s, '=', len);
        rule         r   = {"", FM_LOG_WARN};
        if (eq && (size_t)(eq - s) < sizeof r.room) {
            memcpy(r.room, s, (size_t)(eq - s));
            if (level_of(eq + 1, len - (size_t)(eq + 1 - s), &r.level)) rules[n_rule++] = r;
        } else if (!eq && level_of(s, len, &r.level)) {
            rules[n_rule++] = r;
        }
        s += len + (s[len] == ',');
    }
}

void fm_on_log(fm_log_fn *fn, void *ctx)
{
    listener     = fn;
    listener_ctx = ctx;
}

void fm_log(fm_log_level level, const char *room, const char *fmt, ...)
{
    pthread_once(&once, read_rules);
    fm_log_level limit = FM_LOG_WARN;
    for (int i = 0; i < n_rule; i++)
        if (!rules[i].room[0] || !strcmp(rules[i].room, room)) limit = rules[i].level;
    if (level > limit) return;

    char    line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (listener) {
        listener(listener_ctx, (int)level, room, line);
        return;
    }
    char      whole[sizeof line + 64];
    const int n = snprintf(whole, sizeof whole, "%10.3f %s %.20s: %s\n", fm_now() - fm_start_time(),
                           level_name[level], room, line);
    if (n > 0) fm__log_write(whole, (size_t)n);
}

void fm_log_lines(const char *lines) { fm__log_write(lines, strlen(lines)); }
