/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a study: JSON lines, appended one write() each. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json/read.h"
#include "tune/study.h"

/* ---- out ---- */

static fm_status append_line(const fm_study *s, json_t *line)
{
    char *text = json_dumps(line, JSON_PRESERVE_ORDER | JSON_COMPACT);
    json_decref(line);
    if (!text) return fm_fail(FM_E_OOM, "study");
    const size_t n    = strlen(text);
    text[n]           = '\n'; /* where the NUL was: one write, so lines never mix */
    const ssize_t put = write(s->fd, text, n + 1);
    free(text);
    if (put != (ssize_t)n + 1 || fdatasync(s->fd) != 0)
        return fm_fail(FM_E_IO, "%s: %s", s->path, strerror(errno));
    return FM_OK;
}

static json_t *describe_param(const fm_param *p, const fm_space *s)
{
    json_t *o = json_pack("{s:s}", "name", p->name);
    if (p->kind == FM_PARAM_CHOICE) {
        json_t *list = json_array();
        for (int i = 0; i < p->n_choice; i++)
            json_array_append_new(list, json_string(p->choice[i]));
        json_object_set_new(o, "choices", list);
    } else {
        json_object_set_new(o, "kind", json_string(p->kind == FM_PARAM_INT ? "int" : "real"));
        json_object_set_new(o, "lo", json_real(p->lo));
        json_object_set_new(o, "hi", json_real(p->hi));
        if (p->step != 1) json_object_set_new(o, "step", json_real(p->step));
        if (p->is_log) json_object_set_new(o, "log", json_true());
    }
    if (p->parent >= 0) {
        json_object_set_new(o, "if", json_string(s->param[p->parent].name));
        json_object_set_new(o, "is", json_integer((json_int_t)p->parent_value));
    }
    return o;
}

/* Words of a command line need not be UTF-8. */
static json_t *text_json(const char *text) { return json_string_nocheck(text ? text : ""); }

static json_t *describe(const fm_study *s, const fm_study_aim *aim)
{
    json_t *params = json_array(), *constraints = json_array(), *limits = json_array();
    for (int i = 0; i < s->space->n; i++)
        json_array_append_new(params, describe_param(&s->space->param[i], s->space));
    for (int i = 0; i < s->space->n_constraint; i++)
        json_array_append_new(constraints, json_string(s->space->constraint[i]));
    for (int i = 0; i < aim->n_limit; i++) json_array_append_new(limits, text_json(aim->limit[i]));
    json_t *o =
        json_pack("{s:i, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "study", 1, "params", params,
                  "constraints", constraints, "goal", aim->maximize ? "maximize" : "minimize",
                  "metric", text_json(aim->metric), "limits", limits, "report",
                  text_json(aim->report), "what", text_json(aim->what));
    FM_BUG_UNLESS(o != NULL);
    return o;
}

static json_t *at_json(const fm_study *s, const fm_trial *t)
{
    json_t *at   = json_object();
    fm_str  text = {0};
    for (int i = 0; i < s->space->n; i++) {
        if (isnan(t->at.v[i])) continue;
        fm_str_clear(&text);
        fm_point_text(s->space, &t->at, i, &text);
        json_object_set_new(at, s->space->param[i].name, json_string(text.text));
    }
    fm_str_fini(&text);
    return at;
}

static json_t *real_or_null(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *trial_json(const fm_study *s, const fm_trial *t)
{
    json_t *o = json_pack("{s:i, s:o, s:s, s:o, s:f}", "trial", t->id, "at", at_json(s, t), "state",
                          fm_trial_state_name(t->state), "value", real_or_null(t->value), "seconds",
                          t->seconds);
    FM_BUG_UNLESS(o != NULL);
    if (t->confirms >= 0) json_object_set_new(o, "confirms", json_integer(t->confirms));
    if (t->excess > 0) json_object_set_new(o, "excess", json_real(t->excess));
    if (*t->why) json_object_set_new(o, "why", json_string_nocheck(t->why));
    if (t->n_report) {
        json_t *list = json_array();
        for (int i = 0; i < t->n_report; i++)
            json_array_append_new(list, real_or_null(t->report[i]));
        json_object_set_new(o, "reports", list);
    }
    return o;
}

fm_status fm_study_end(fm_study *s, const fm_trial *t)
{
    return s->fd < 0 ? FM_OK : append_line(s, trial_json(s, t));
}

/* ---- in ---- */

static fm_status read_point(fm_study *s, fm_point *out, const json_t *at)
{
    for (int i = 0; i < s->space->n; i++) {
        const json_t *v = json_object_get(at, s->space->param[i].name);
        out->v[i]       = NAN;
        if (json_is_string(v))
            FM_TRY(fm_param_read(&s->space->param[i], json_string_value(v), &out->v[i]));
    }
    return FM_OK;
}

static fm_status read_state(fm_trial_state *out, const char *name, fm_json_at at)
{
    for (int i = 0; i < FM_TRIAL_RUNNING; i++)
        if (!strcmp(fm_trial_state_name((fm_trial_state)i), name)) {
            *out = (fm_trial_state)i;
            return FM_OK;
        }
    return fm_fail(FM_E_FORMAT, "%s: state: \"%s\" is none", at.file, name);
}

static void read_reports(fm_trial *t, const json_t *list)
{
    const size_t n = json_array_size(list);
    if (!n || !(t->report = malloc(n * sizeof *t->report))) return;
    for (size_t i = 0; i < n; i++)
        t->report[t->n_report++] = json_number_value(json_array_get(list, i));
}

static fm_status read_trial(fm_study *s, const json_t *o, fm_json_at at)
{
    fm_point    p  = {{0}};
    int64_t     id = 0, confirms = -1;
    const char *state = NULL, *why = "";
    FM_TRY(fm_json_int(&id, o, "trial", 0, 1 << 30, at));
    FM_TRY(fm_json_string(&state, o, "state", at));
    FM_TRY(fm_json_opt_int(&confirms, o, "confirms", 0, 1 << 30, at));
    FM_TRY(fm_json_opt_string(&why, o, "why", at));
    FM_TRY(read_point(s, &p, json_object_get(o, "at")));
    if (fm_study_find(s, (int)id))
        return fm_fail(FM_E_FORMAT, "%s: trial %d is there already", at.file, (int)id);
    fm_trial *t = fm_study_begin(s, &p);
    t->id       = (int)id;
    t->confirms = (int)confirms;
    strncpy(t->why, why, sizeof t->why - 1);
    FM_TRY(read_state(&t->state, state, at));
    FM_TRY(fm_json_opt_real(&t->value, o, "value", -INFINITY, INFINITY, at));
    FM_TRY(fm_json_opt_real(&t->excess, o, "excess", 0, INFINITY, at));
    FM_TRY(fm_json_opt_real(&t->seconds, o, "seconds", 0, INFINITY, at));
    if (t->state == FM_TRIAL_OK && isnan(t->value))
        return fm_fail(FM_E_FORMAT, "%s: trial %d has no value", at.file, t->id);
    read_reports(t, json_object_get(o, "reports"));
    return FM_OK;
}

/* The same search as the one that was begun? */
static fm_status check_head(const fm_study *s, const json_t *mine, const json_t *head)
{
    if (!json_is_integer(json_object_get(head, "study")))
        return fm_fail(FM_E_FORMAT, "%s is not a study of fathom tune", s->path);
    static const char *const part[]  = {"params", "constraints", "goal", "metric",
                                        "limits", "report",      "what"};
    const char              *differs = NULL;
    for (size_t i = 0; i < sizeof part / sizeof part[0] && !differs; i++)
        if (!json_equal(json_object_get(mine, part[i]), json_object_get(head, part[i])))
            differs = part[i];
    if (!differs) return FM_OK;
    return fm_fail(FM_E_ARG,
                   "%s holds another study: its \"%s\" differs. Give --study another name, or "
                   "remove the file",
                   s->path, differs);
}

static fm_status read_line(fm_study *s, const json_t *head, const char *text, size_t len,
                           int number)
{
    json_t *o    = NULL;
    fm_str  name = {0};
    fm_str_printf(&name, "%s, line %d", s->path, number);
    fm_status rc = fm_json_parse(&o, text, len, name.text);
    if (rc == FM_OK)
        rc = number == 1 ? check_head(s, head, o) : read_trial(s, o, (fm_json_at){name.text, ""});
    json_decref(o);
    fm_str_fini(&name);
    return rc;
}

/* Whole lines; *used: bytes up to the end of the last. */
static fm_status read_lines(fm_study *s, const json_t *head, const char *text, size_t len,
                            size_t *used)
{
    int number = 0;
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        if (!end) break;
        const size_t n = (size_t)(end - text) - at;
        FM_TRY(read_line(s, head, text + at, n, ++number));
        *used = at += n + 1;
    }
    return FM_OK;
}

/* The beginning of a first line of ours, not another file without a newline. */
static int is_torn_head(const fm_str *text)
{
    static const char head[] = "{\"study\":1,";
    const size_t      n      = sizeof head - 1;
    return !strncmp(text->text, head, text->len < n ? text->len : n);
}

static fm_status read_file(fm_study *s, json_t *head)
{
    struct stat st;
    if (fstat(s->fd, &st) != 0) return fm_fail(FM_E_IO, "%s: %s", s->path, strerror(errno));
    fm_str text = {0};
    fm_str_reserve(&text, (size_t)st.st_size + 1);
    char    block[65536];
    ssize_t n;
    while ((n = read(s->fd, block, sizeof block)) > 0) fm_str_add(&text, block, (size_t)n);
    size_t    used = 0;
    fm_status rc   = n < 0 ? fm_fail(FM_E_IO, "%s: %s", s->path, strerror(errno)) : FM_OK;
    if (rc == FM_OK) rc = read_lines(s, head, text.text ? text.text : "", text.len, &used);
    if (rc == FM_OK && used == 0 && text.len && !is_torn_head(&text))
        rc = fm_fail(FM_E_FORMAT, "%s is not a study of fathom tune", s->path);
    /* A line without its end: the process was killed while it wrote. */
    if (rc == FM_OK && used < text.len && ftruncate(s->fd, (off_t)used) != 0)
        rc = fm_fail(FM_E_IO, "%s: %s", s->path, strerror(errno));
    if (rc == FM_OK && used == 0) rc = append_line(s, json_incref(head));
    fm_str_fini(&text);
    return rc;
}

fm_status fm_study_open(fm_study *s, const char *path, fm_space *space, const fm_study_aim *aim)
{
    fm_study_init(s, space, aim->maximize);
    s->path = strdup(path);
    if (!s->path) return fm_fail(FM_E_OOM, "study");
    s->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (s->fd < 0) return fm_fail(FM_E_IO, "--study %s: %s", path, strerror(errno));
    if (flock(s->fd, LOCK_EX | LOCK_NB) != 0)
        return fm_fail(FM_E_FULL, "--study %s: another process is at work on it", path);
    json_t         *head = describe(s, aim);
    const fm_status rc   = read_file(s, head);
    json_decref(head);
    return rc;
}
