/* SPDX-License-Identifier: Apache-2.0 */
/* The conversations of a ShareGPT file.  The list is split here and every
 * entry goes through the JSON library alone, so that a file of 700 MB needs
 * no tree of 2 GB. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "json/read.h"
#include "llm/data/dataset_internal.h"

enum { MAX_ENTRIES = 1 << 30 };

void fm__talks_fini(fm__talks *t)
{
    free(t->talk);
    *t = (fm__talks){0};
}

static int is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_space(const char *text, size_t len, size_t i)
{
    while (i < len && is_space(text[i])) i++;
    return i;
}

/* The comma or bracket that ends the entry beginning at i, or len. */
static size_t entry_end(const char *text, size_t len, size_t i)
{
    int depth = 0, in_string = 0;
    for (; i < len; i++) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            else if (c == '"') in_string = 0;
        } else if (c == '"') in_string = 1;
        else if (c == '[' || c == '{') depth++;
        else if (depth == 0 && (c == ',' || c == ']')) return i;
        else if (c == ']' || c == '}') depth--;
    }
    return len;
}

/* The value of \uXXXX at s, or -1. */
static int unicode_escape(const char *s, size_t len)
{
    if (len < 6 || s[0] != '\\' || s[1] != 'u') return -1;
    int v = 0;
    for (int i = 2; i < 6; i++) {
        const char *digits = "0123456789abcdef", *at = s[i] ? strchr(digits, s[i] | 32) : NULL;
        if (!at) return -1;
        v = v << 4 | (int)(at - digits);
    }
    return v;
}

static int is_high(int v)
{
    return v >= 0xd800 && v < 0xdc00;
}

static int is_low(int v)
{
    return v >= 0xdc00 && v < 0xe000;
}

/* Half a surrogate pair is legal for Python's reader, not for ours: it becomes
 * U+FFFD.  True if there was one. */
static int mend_surrogates(fm_str *out, const char *s, size_t len)
{
    int mended = 0;
    for (size_t i = 0, n; i < len; i += n) {
        const int v = unicode_escape(s + i, len - i);
        n           = v >= 0 ? 6 : s[i] == '\\' && i + 1 < len ? 2 : 1;
        if (is_high(v) && is_low(unicode_escape(s + i + 6, len - i - 6))) {
            n = 12;
        } else if (is_high(v) || is_low(v)) {
            fm_str_puts(out, "\\ufffd");
            mended = 1;
            continue;
        }
        fm_str_add(out, s + i, n);
    }
    return mended;
}

static fm_status parse_entry(json_t **out, const fm__talk *k, const char *file)
{
    fm_str name = {0}, mended = {0};
    fm_str_printf(&name, "%s: entry %d", file, k->entry);
    fm_status rc = fm_json_parse(out, k->json, k->len, name.text);
    if (rc != FM_OK && mend_surrogates(&mended, k->json, k->len))
        rc = fm_json_parse(out, mended.text, mended.len, name.text);
    fm_str_fini(&mended);
    fm_str_fini(&name);
    return rc;
}

/* The list of turns; NULL if the entry has none. */
static fm_status turns_of(json_t **out, json_t *doc, const fm__talk *k, const char *file)
{
    if (!json_is_object(doc))
        return fm_fail(FM_E_FORMAT, "%s: entry %d: expected an object, found %s", file, k->entry,
                       fm_json_kind(doc));
    const char *key = json_object_get(doc, "conversations") ? "conversations" : "conversation";
    json_t     *v   = json_object_get(doc, key);
    if (v && !json_is_array(v))
        return fm_fail(FM_E_FORMAT, "%s: entry %d: %s: expected an array, found %s", file, k->entry,
                       key, fm_json_kind(v));
    *out = v;
    return FM_OK;
}

static fm_status value_of(const char **text, size_t *len, const json_t *turns, int i,
                          const fm__talk *k, const char *file)
{
    const json_t *v = json_object_get(json_array_get(turns, (size_t)i), "value");
    if (!json_is_string(v))
        return fm_fail(FM_E_FORMAT, "%s: entry %d: turn %d: value: expected a string, found %s",
                       file, k->entry, i, fm_json_kind(v));
    *text = json_string_value(v);
    *len  = json_string_length(v);
    return FM_OK;
}

/* *out->doc stays NULL if the entry has fewer than two turns. */
static fm_status read_turns(fm__turns *out, const fm__talk *k, const char *file)
{
    fm_status rc    = FM_OK;
    json_t   *turns = NULL;
    fm__turns t     = {0};
    FM_TRY(parse_entry(&t.doc, k, file));
    FM_GO(turns_of(&turns, t.doc, k, file));
    if (json_array_size(turns) < 2) goto out;
    FM_GO(value_of(&t.prompt, &t.n_prompt, turns, 0, k, file));
    FM_GO(value_of(&t.reply, &t.n_reply, turns, 1, k, file));

    *out  = t;
    t.doc = NULL;
out:
    json_decref(t.doc);
    return rc;
}

fm_status fm__talk_read(fm__turns *out, const fm__talks *t, const fm__talk *talk)
{
    FM_TRY(read_turns(out, talk, t->file));
    FM_BUG_UNLESS(out->doc); /* indexing has dropped those without two turns */
    return FM_OK;
}

static fm_status add_talk(fm__talks *t, fm__talk k)
{
    if (t->n == t->cap) {
        const int   cap  = t->cap ? 2 * t->cap : 1024;
        void *const more = realloc(t->talk, (size_t)cap * sizeof k);
        if (!more) return fm_fail(FM_E_OOM, "%s: index of %d conversations", t->file, cap);
        t->talk = more;
        t->cap  = cap;
    }
    t->talk[t->n++] = k;
    return FM_OK;
}

static fm_status index_entry(fm__talks *t, fm__talk k)
{
    fm__turns turns = {0};
    FM_TRY(read_turns(&turns, &k, t->file));
    const fm_status rc = turns.doc ? add_talk(t, k) : FM_OK;
    json_decref(turns.doc);
    return rc;
}

/* The entries from *at on, up to the bracket that ends the list. */
static fm_status index_entries(fm__talks *t, const char *text, size_t len, size_t *at)
{
    for (int entry = 0; entry < MAX_ENTRIES; entry++) {
        const size_t begin = *at, end = entry_end(text, len, begin);
        if (end == len)
            return fm_fail(FM_E_FORMAT, "%s: entry %d: the list is not closed", t->file, entry);
        FM_TRY(index_entry(t, (fm__talk){text + begin, end - begin, entry}));
        *at = end + 1;
        if (text[end] == ']') return FM_OK;
    }
    return fm_fail(FM_E_FORMAT, "%s: more than %d entries", t->file, MAX_ENTRIES);
}

static fm_status index_list(fm__talks *t, const char *text, size_t len)
{
    size_t at = skip_space(text, len, 0);
    if (at == len || text[at] != '[')
        return fm_fail(FM_E_FORMAT, "%s: expected a JSON list of conversations, found %s", t->file,
                       at == len ? "nothing" : "something else");
    at = skip_space(text, len, at + 1);
    if (at < len && text[at] == ']') at++;
    else FM_TRY(index_entries(t, text, len, &at));

    if (skip_space(text, len, at) != len)
        return fm_fail(FM_E_FORMAT, "%s: byte %zu: more text after the list", t->file, at);
    if (!t->n) return fm_fail(FM_E_FORMAT, "%s: no conversation has two turns", t->file);
    return FM_OK;
}

fm_status fm__talks_index(fm__talks *out, const char *text, size_t len, const char *file)
{
    fm__talks       t  = {.file = file};
    const fm_status rc = index_list(&t, text, len);
    if (rc != FM_OK) fm__talks_fini(&t);
    else             *out = t;
    return rc;
}

fm_status fm__talks_shuffled(fm__talk **out, const fm__talks *t, fm_mt *python)
{
    const size_t n    = (size_t)t->n;
    fm__talk    *copy = malloc(n * sizeof *copy);
    if (!copy) return fm_fail(FM_E_OOM, "%s: order of %d conversations", t->file, t->n);
    memcpy(copy, t->talk, n * sizeof *copy);
    fm_mt_python_shuffle(python, copy, n, sizeof *copy);
    *out = copy;
    return FM_OK;
}
