/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/text/tool_calls.h"

#include <string.h>

#include "llm/text/marks.h"

enum { MAX_HEAD = 512, MAX_NAME = 256 };

enum {
    CALLS_BEGIN = FM_MARK_CALLS_BEGIN,
    CALL_BEGIN  = FM_MARK_CALL_BEGIN,
    CALL_END    = FM_MARK_CALL_END,
    CALLS_END   = FM_MARK_CALLS_END,
    SEPARATOR   = FM_MARK_SEPARATOR,
    N_MARK,
};

static const char *const marks[][N_MARK] = {
    [FM_TOOLS_V3] = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
                     "<｜tool▁calls▁end｜>", "<｜tool▁sep｜>"},
    [FM_TOOLS_V31] = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
                      "<｜tool▁calls▁end｜>", "<｜tool▁sep｜>"},
    [FM_TOOLS_KIMI] = {"<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_end|>",
                       "<|tool_calls_section_end|>", "<|tool_call_argument_begin|>"},
};
static const char fence[] = "```json\n";

const char *const *fm_tool_calls_marks(fm_tool_style style)
{
    return marks[style];
}

const char *fm_tool_calls_mark(fm_tool_style style)
{
    return marks[style][CALLS_BEGIN];
}

void fm_tool_calls_init(fm_tool_calls *t, fm_tool_style style, fm_tool_sink *sink, void *ctx)
{
    *t = (fm_tool_calls){.style = style, .sink = sink, .ctx = ctx};
}

void fm_tool_calls_fini(fm_tool_calls *t)
{
    fm_str_fini(&t->held);
}

static void drop(fm_tool_calls *t, size_t n)
{
    memmove(t->held.text, t->held.text + n, t->held.len - n + 1);
    t->held.len -= n;
}

static void emit(fm_tool_calls *t, fm_tool_piece kind, size_t n)
{
    if (n && !(kind == FM_TOOL_ARGUMENTS && t->dropping))
        t->sink(t->ctx, kind, t->n_call - 1, "", t->held.text, n);
    drop(t, n);
}

static int is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t trimmed(const char *text, size_t n, int backticks)
{
    while (n && (is_space(text[n - 1]) || (backticks && text[n - 1] == '`'))) n--;
    return n;
}

static void skip_space(fm_tool_calls *t)
{
    size_t n = 0;
    while (n < t->held.len && is_space(t->held.text[n])) n++;
    if (n) drop(t, n);
}

/* Each of these returns 1 if it got further and there may be more. */

static int read_text(fm_tool_calls *t)
{
    const fm_mark hit = fm_mark_find(t->held.text, t->held.len, marks[t->style], 2);
    emit(t, FM_TOOL_TEXT,
         trimmed(t->held.text, hit.at, 0)); /* white space waits for what follows */
    if (hit.which < 0) return 0;
    skip_space(t);
    if (hit.which == CALLS_BEGIN) drop(t, strlen(marks[t->style][CALLS_BEGIN]));
    t->at = FM_TOOLS_BETWEEN; /* some models leave out the outer mark */
    return 1;
}

/* Another call, the end, or something that does not belong here. */
static int read_between(fm_tool_calls *t)
{
    static const int may_come[] = {CALL_BEGIN, CALLS_END};
    skip_space(t);
    if (!t->held.len) return 0;
    for (int i = 0; i < 2; i++) {
        const char  *mark = marks[t->style][may_come[i]];
        const size_t full = strlen(mark), n = t->held.len < full ? t->held.len : full;
        if (memcmp(t->held.text, mark, n)) continue;
        if (n < full) return 0;
        drop(t, full);
        t->at = may_come[i] == CALL_BEGIN ? FM_TOOLS_IN_HEAD : FM_TOOLS_IN_TEXT;
        return 1;
    }
    t->at = FM_TOOLS_IN_TEXT;
    return 1;
}

typedef struct {
    const char *name, *id;
    size_t      name_len, id_len;
    size_t      used; /* bytes of the head; 0: more must come */
    int         bad;
} head;

/* White space around a name is not part of it. */
static void set_name(head *h, const char *text, size_t n)
{
    while (n && is_space(*text)) text++, n--;
    h->name     = text;
    h->name_len = trimmed(text, n, 0);
}

static int name_is_sane(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || s[i] == '<' || s[i] == '`') return 0;
    return n > 0;
}

int fm_tool_calls_can_name(const char *name)
{
    const size_t n = strlen(name);
    return n <= MAX_NAME && name_is_sane(name, n);
}

/* functions.NAME:IDX */
static void split_kimi_id(head *h, const char *text, size_t n)
{
    const size_t end = trimmed(text, n, 0);
    h->id            = text;
    h->id_len        = end;
    const char *dot = memchr(text, '.', end), *colon = memrchr(text, ':', end);
    const char *from = dot ? dot + 1 : text;
    h->name          = from;
    h->name_len      = (size_t)((colon && colon > from ? colon : text + end) - from);
}

/* function<sep>NAME\n```json\n, after the separator. */
static void read_v3_name(head *h, const char *text, size_t n, size_t before)
{
    const char *line = memchr(text, '\n', n);
    if (!line) return;
    const size_t rest = n - (size_t)(line + 1 - text), full = strlen(fence);
    const size_t some = rest < full ? rest : full;
    set_name(h, text, (size_t)(line - text));
    if (memcmp(line + 1, fence, some)) h->bad = 1;
    else if (some == full) h->used = before + (size_t)(line + 1 - text) + full;
}

static head parse_head(const fm_tool_calls *t)
{
    head          h    = {.name = "", .id = ""};
    const char   *text = t->held.text, *sep = marks[t->style][SEPARATOR];
    const fm_mark hit = fm_mark_find(text, t->held.len, &sep, 1);
    if (hit.which >= 0) {
        const size_t before = hit.at + strlen(sep);
        if (t->style == FM_TOOLS_V3) {
            read_v3_name(&h, text + before, t->held.len - before, before);
        } else {
            h.used = before;
            set_name(&h, text, hit.at);
            if (t->style == FM_TOOLS_KIMI) split_kimi_id(&h, text, hit.at);
        }
    }
    const char *end  = marks[t->style][CALL_END];
    const int   ends = memmem(text, h.used ? h.used : t->held.len, end, strlen(end)) != NULL;
    if (ends || (h.used ? h.used : t->held.len) > MAX_HEAD) h.bad = 1;
    if (h.used && !name_is_sane(h.name, h.name_len)) h.bad = 1;
    return h;
}

/* What looked like a call is text, its mark included. */
static void give_up_call(fm_tool_calls *t)
{
    const char *mark = marks[t->style][CALL_BEGIN];
    t->sink(t->ctx, FM_TOOL_TEXT, t->n_call - 1, "", mark, strlen(mark));
    t->at = FM_TOOLS_IN_TEXT;
}

static int read_head(fm_tool_calls *t)
{
    if (!t->held.len) return 0;
    const head h = parse_head(t);
    if (h.bad) {
        give_up_call(t);
        return 1;
    }
    if (!h.used) return 0;
    fm_str name = {0}, id = {0};
    fm_str_add(&name, h.name, h.name_len);
    fm_str_add(&id, h.id, h.id_len);
    t->dropping = t->known && !t->known(t->ctx, name.text);
    if (!t->dropping) {
        t->n_call++;
        t->sink(t->ctx, FM_TOOL_NAME, t->n_call - 1, id.text ? id.text : "", name.text, name.len);
    }
    fm_str_fini(&name);
    fm_str_fini(&id);
    drop(t, h.used);
    t->at    = FM_TOOLS_IN_ARGUMENTS;
    t->began = 0;
    return 1;
}

static int read_arguments(fm_tool_calls *t)
{
    if (!t->began) skip_space(t);
    if (!t->held.len) return 0;
    t->began          = 1;
    const char   *end = marks[t->style][CALL_END];
    const fm_mark hit = fm_mark_find(t->held.text, t->held.len, &end, 1);
    const size_t  n   = trimmed(t->held.text, hit.at, t->style == FM_TOOLS_V3);
    emit(t, FM_TOOL_ARGUMENTS, n);
    if (hit.which < 0) return 0;
    drop(t, hit.at - n + strlen(end));
    t->at = FM_TOOLS_BETWEEN;
    return 1;
}

void fm_tool_calls_push(fm_tool_calls *t, const char *text, size_t len)
{
    fm_str_add(&t->held, text, len);
    int more = t->held.len > 0;
    while (more && t->held.len) switch (t->at) {
        case FM_TOOLS_IN_TEXT: more = read_text(t); break;
        case FM_TOOLS_BETWEEN: more = read_between(t); break;
        case FM_TOOLS_IN_HEAD: more = read_head(t); break;
        case FM_TOOLS_IN_ARGUMENTS: more = read_arguments(t); break;
        }
}

/* The text was cut off: what is held of a mark or of a call's head belongs to no call. */
static int is_cut_markup(const fm_tool_calls *t)
{
    return t->at == FM_TOOLS_IN_HEAD || t->at == FM_TOOLS_BETWEEN;
}

void fm_tool_calls_end(fm_tool_calls *t)
{
    if (t->at == FM_TOOLS_IN_ARGUMENTS) {
        const char   *end = marks[t->style][CALL_END];
        const fm_mark hit = fm_mark_find(t->held.text ? t->held.text : "", t->held.len, &end, 1);
        emit(t, FM_TOOL_ARGUMENTS, trimmed(t->held.text, hit.at, t->style == FM_TOOLS_V3));
    } else if (t->held.len && !is_cut_markup(t)) {
        const int only_space = !trimmed(t->held.text, t->held.len, 0);
        if (!(only_space && t->n_call)) emit(t, FM_TOOL_TEXT, t->held.len);
    }
    fm_str_clear(&t->held);
    t->at = FM_TOOLS_IN_TEXT;
}

void fm_tool_calls_opening(fm_tool_style style, const char *name, fm_str *out)
{
    fm_str_puts(out, marks[style][CALLS_BEGIN]);
    fm_str_puts(out, marks[style][CALL_BEGIN]);
    if (style == FM_TOOLS_V3) fm_str_printf(out, "function%s", marks[style][SEPARATOR]);
    if (style == FM_TOOLS_KIMI) fm_str_puts(out, "functions.");
    if (!name) return;
    fm_str_puts(out, name);
    if (style == FM_TOOLS_V3) fm_str_printf(out, "\n%s", fence);
    else if (style == FM_TOOLS_KIMI) fm_str_printf(out, ":0%s", marks[style][SEPARATOR]);
    else fm_str_puts(out, marks[style][SEPARATOR]);
}
