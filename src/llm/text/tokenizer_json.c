/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json -> vocabulary, merges, added tokens.  Its post_processor is
 * not read: whether a BOS goes in front is said in tokenizer_config.json. */
#include <string.h>

#include "llm/text/tokenizer_internal.h"

static fm_status unsupported(const char *file, const char *field, const char *why)
{
    return fm_fail(FM_E_NOSUP, "%s: %s: %s", file, field, why);
}

static int is_null(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    return !v || json_is_null(v);
}

/* Fields that would change how words are merged, at their plain value. */
static fm_status check_model(const json_t *model, const char *file)
{
    const fm_json_at at   = {file, "model."};
    const char      *type = "BPE", *prefix = "", *suffix = "";
    int              fallback = 0;
    FM_TRY(fm_json_opt_string(&type, model, "type", at));
    if (strcmp(type, "BPE") != 0)
        return fm_fail(FM_E_NOSUP, "%s: model.type is \"%.40s\"; only BPE is supported", file,
                       type);
    FM_TRY(fm_json_opt_string(&prefix, model, "continuing_subword_prefix", at));
    FM_TRY(fm_json_opt_string(&suffix, model, "end_of_word_suffix", at));
    if (*prefix) return unsupported(file, "model.continuing_subword_prefix", "not supported");
    if (*suffix) return unsupported(file, "model.end_of_word_suffix", "not supported");
    FM_TRY(fm_json_opt_bool(&fallback, model, "byte_fallback", at));
    if (fallback)
        return unsupported(file, "model.byte_fallback", "only byte-level BPE is supported");
    if (!is_null(model, "unk_token"))
        return unsupported(file, "model.unk_token", "only byte-level BPE is supported");
    if (!is_null(model, "dropout")) return unsupported(file, "model.dropout", "not supported");
    return FM_OK;
}

static fm_status check_normalizer(const json_t *root, const char *file)
{
    const json_t *v = json_object_get(root, "normalizer");
    if (!v || json_is_null(v)) return FM_OK;
    const json_t *list = json_object_get(v, "normalizers");
    if (json_is_array(list) && json_array_size(list) == 0) return FM_OK;
    return unsupported(file, "normalizer", "text that must be normalised is not supported");
}

static fm_status read_vocab(fm__vocab *v, const fm__alphabet *a, json_t *tokens, const char *file)
{
    if (!json_is_object(tokens))
        return fm_fail(FM_E_FORMAT, "%s: model.vocab: expected an object, found %s", file,
                       fm_json_kind(tokens));
    FM_TRY(fm__vocab_init(v, json_object_size(tokens)));

    fm_str      bytes = {0};
    fm_status   rc    = FM_OK;
    const char *text;
    json_t     *value;
    json_object_foreach(tokens, text, value) {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= FM__MAX_TOKENS) {
            rc = fm_fail(FM_E_FORMAT, "%s: model.vocab[\"%.60s\"]: expected an id below %d", file,
                         text, FM__MAX_TOKENS);
            break;
        }
        const int spelled = fm__alphabet_decode(a, text, strlen(text), &bytes);
        rc                = fm__vocab_put(v, (int32_t)id, bytes.text ? bytes.text : "", bytes.len);
        if (rc != FM_OK) break;
        if (spelled && bytes.len) fm__vocab_index(v, (int32_t)id); /* the rest no merge can reach */
    }
    fm_str_fini(&bytes);
    return rc;
}

/* One merge is ["left", "right"] or "left right". */
static int split_merge(const json_t *m, const char **left, size_t *n_left, const char **right,
                       size_t *n_right)
{
    if (json_is_array(m) && json_array_size(m) == 2) {
        const json_t *l = json_array_get(m, 0), *r = json_array_get(m, 1);
        if (!json_is_string(l) || !json_is_string(r)) return 0;
        *left    = json_string_value(l);
        *n_left  = json_string_length(l);
        *right   = json_string_value(r);
        *n_right = json_string_length(r);
        return 1;
    }
    const char *text  = json_string_value(m);
    const char *space = text ? strchr(text, ' ') : NULL;
    if (!space || strchr(space + 1, ' ')) return 0;
    *left    = text;
    *n_left  = (size_t)(space - text);
    *right   = space + 1;
    *n_right = strlen(space + 1);
    return 1;
}

struct merge_reader {
    fm_tokenizer       *tokenizer;
    const fm__alphabet *alphabet;
    fm_str              left, right; /* bytes */
};

static int read_merge(struct merge_reader *r, const json_t *m, int32_t rank)
{
    const char *left, *right;
    size_t      n_left, n_right;
    if (!split_merge(m, &left, &n_left, &right, &n_right)) return 0;
    if (!fm__alphabet_decode(r->alphabet, left, n_left, &r->left) || !r->left.len ||
        !fm__alphabet_decode(r->alphabet, right, n_right, &r->right) || !r->right.len)
        return 0;

    const fm__vocab *v = &r->tokenizer->vocab;
    const int32_t    a = fm__vocab_find(v, r->left.text, r->left.len);
    const int32_t    b = fm__vocab_find(v, r->right.text, r->right.len);
    fm_str_add(&r->left, r->right.text, r->right.len);
    const int32_t ab = fm__vocab_find(v, r->left.text, r->left.len);
    if (a < 0 || b < 0 || ab < 0) return 0;
    fm__bpe_add(&r->tokenizer->bpe, a, b, rank, ab);
    return 1;
}

static fm_status read_merges(fm_tokenizer *t, const fm__alphabet *a, const json_t *merges,
                             const char *file)
{
    const size_t n = json_array_size(merges);
    if (!json_is_array(merges) || n > 2 * FM__MAX_TOKENS)
        return fm_fail(FM_E_FORMAT, "%s: model.merges: expected an array of at most %d merges",
                       file, 2 * FM__MAX_TOKENS);
    FM_TRY(fm__bpe_init(&t->bpe, n));
    struct merge_reader r  = {.tokenizer = t, .alphabet = a};
    fm_status           rc = FM_OK;
    for (size_t i = 0; i < n && rc == FM_OK; i++)
        if (!read_merge(&r, json_array_get(merges, i), (int32_t)i))
            rc = fm_fail(FM_E_FORMAT, "%s: model.merges[%zu]: expected two tokens that join to one",
                         file, i);
    fm_str_fini(&r.left);
    fm_str_fini(&r.right);
    return rc;
}

fm_status fm__added_entry_read(fm__added_entry *out, const json_t *entry, fm_json_at at)
{
    static const char *const edges[] = {"single_word", "lstrip", "rstrip"};
    fm__added_entry          e       = {.normalized = 1};
    FM_TRY(fm_json_string(&e.content, entry, "content", at));
    FM_TRY(fm_json_opt_bool(&e.special, entry, "special", at));
    e.normalized = !e.special;
    FM_TRY(fm_json_opt_bool(&e.normalized, entry, "normalized", at));
    for (int i = 0; i < 3; i++) {
        int wanted = 0;
        FM_TRY(fm_json_opt_bool(&wanted, entry, edges[i], at));
        if (wanted)
            return fm_fail(FM_E_NOSUP, "%s: %s%s of \"%.60s\" is not supported", at.file, at.scope,
                           edges[i], e.content);
    }
    const size_t n = strlen(e.content);
    if (n == 0 || n > FM__MAX_ADDED_BYTES ||
        n < json_string_length(json_object_get(entry, "content")))
        return fm_fail(FM_E_FORMAT, "%s: %scontent must have 1 to %d bytes, none of them zero",
                       at.file, at.scope, FM__MAX_ADDED_BYTES);
    *out = e;
    return FM_OK;
}

/* Like any token, an added one whose text spells bytes stands for them when
 * it is decoded: V2 adds the bytes that no text has in this way. */
fm_status fm__tokenizer_add(fm_tokenizer *t, const fm__added_entry *e)
{
    fm__alphabet a;
    fm_str       bytes = {0};
    fm__alphabet_init(&a);
    fm__alphabet_decode(&a, e->content, strlen(e->content), &bytes);
    fm_status rc = fm__vocab_put(&t->vocab, (int32_t)e->id, bytes.text, bytes.len);
    fm_str_fini(&bytes);
    if (rc != FM_OK) return rc;
    t->vocab.token[e->id].special = (unsigned char)e->special;
    return fm__added_put(&t->added[e->normalized], e->content, strlen(e->content), (int32_t)e->id);
}

static fm_status read_added(fm_tokenizer *t, const json_t *list, const char *file)
{
    const fm_json_at at = {file, "added_tokens[]."};
    if (!list || json_is_null(list)) return FM_OK;
    if (!json_is_array(list))
        return fm_fail(FM_E_FORMAT, "%s: added_tokens: expected an array, found %s", file,
                       fm_json_kind(list));
    size_t  i;
    json_t *entry;
    json_array_foreach(list, i, entry) {
        fm__added_entry e;
        int64_t         id;
        FM_TRY(fm__added_entry_read(&e, entry, at));
        FM_TRY(fm_json_int(&id, entry, "id", 0, FM__MAX_TOKENS - 1, at));
        e.id = id;
        FM_TRY(fm__tokenizer_add(t, &e));
    }
    return FM_OK;
}

fm_status fm__tokenizer_read_json(fm_tokenizer *t, const json_t *root, const char *file)
{
    const json_t *model = json_object_get(root, "model");
    if (!json_is_object(model))
        return fm_fail(FM_E_FORMAT, "%s: model: expected an object, found %s", file,
                       fm_json_kind(model));
    FM_TRY(check_model(model, file));
    FM_TRY(check_normalizer(root, file));
    FM_TRY(fm__splits_read_json(&t->splits, json_object_get(root, "pre_tokenizer"), file));

    fm__alphabet a;
    fm__alphabet_init(&a);
    FM_TRY(read_vocab(&t->vocab, &a, json_object_get(model, "vocab"), file));
    const int missing = fm__bpe_bind_bytes(&t->bpe, &t->vocab);
    if (missing >= 0)
        return fm_fail(FM_E_FORMAT, "%s: model.vocab has no token for byte 0x%02X", file, missing);
    FM_TRY(read_merges(t, &a, json_object_get(model, "merges"), file));
    FM_TRY(fm_json_opt_bool(&t->bpe.whole_first, model, "ignore_merges",
                            (fm_json_at){file, "model."}));
    return read_added(t, json_object_get(root, "added_tokens"), file);
}
