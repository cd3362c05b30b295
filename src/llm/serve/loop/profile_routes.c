/* SPDX-License-Identifier: Apache-2.0 */
/* /start_profile and /stop_profile, as SGLang has them: a trace of what runs in between, in the
 * directory the server was given.  The reply names the file. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "llm/serve/loop/routes.h"

typedef struct {
    int64_t     n_step;
    const char *dir; /* NULL: not said */
} wish;

static fm_status read_wish(wish *w, const json_t *body)
{
    const fm_json_at at = {"request", ""};
    if (!json_is_object(body)) return fm_fail(FM_E_FORMAT, "request: expected a JSON object");
    FM_TRY(fm_json_opt_int(&w->n_step, body, "num_steps", 0, INT32_MAX, at));
    return fm_json_opt_string(&w->dir, body, "output_dir", at);
}

/* A client does not choose where on the server's disk files appear. */
static fm_status check_dir(const wish *w, const char *dir)
{
    if (!w->dir || !strcmp(w->dir, dir)) return FM_OK;
    return fm_fail(FM_E_ARG, "output_dir: traces are written to %s, as --profile-dir says", dir);
}

/* The second, the process and a counter: servers that share a directory may be asked to start in the
 * same second by a router. */
static void name_file(char *out, size_t size, const char *dir)
{
    static unsigned n;
    struct tm       t;
    const time_t    now = time(NULL);
    char            when[32];
    gmtime_r(&now, &t);
    strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &t);
    snprintf(out, size, "%s/fathom-%s-%ld-%u.trace", dir, when, (long)getpid(), n++);
}

void fm__profile_start(fm_serve *s, fm_exchange *x)
{
    wish      w    = {0};
    json_t   *body = NULL;
    char      file[1024];
    fm_status rc = x->body_len ? fm_json_parse(&body, x->body, x->body_len, "request") : FM_OK;
    if (rc == FM_OK && x->body_len) rc = read_wish(&w, body);
    if (rc == FM_OK) rc = check_dir(&w, s->opt->profile_dir);
    if (rc == FM_OK) {
        name_file(file, sizeof file, s->opt->profile_dir);
        fm__call_begin_profile(s, x, file, w.n_step);
    } else {
        fm__reply_error(x, 400, fm_why());
    }
    json_decref(body);
}

void fm__profile_stop(fm_serve *s, fm_exchange *x) { fm__call_begin_profile(s, x, NULL, 0); }
