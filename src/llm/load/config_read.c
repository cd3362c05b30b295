/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/load/config_read.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "llm/load/config_internal.h"

/* --- the family ------------------------------------------------------------ */

static const fm_config_reader *const readers[] = {&fm_config_deepseek};

fm_status fm__config_word(char *dst, size_t size, const char *word, const char *key, fm_json_at at)
{
    const int n = snprintf(dst, size, "%s", word);
    if (n < 0 || (size_t)n >= size)
        return fm_fail(FM_E_FORMAT, "%s: %s is longer than %zu characters", at.file, key, size - 1);
    return FM_OK;
}

static void list_architectures(fm_str *out)
{
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        for (const char *const *a = readers[i]->architectures; *a; a++)
            fm_str_printf(out, "%s%s", out->len ? ", " : "", *a);
}

static fm_status refuse_architecture(const char *name, const char *file)
{
    fm_str known = {0};
    list_architectures(&known);
    const fm_status rc = fm_fail(FM_E_NOSUP, "%s: architectures: %s is not supported; fathom runs %s",
                                 file, name, known.text);
    fm_str_fini(&known);
    return rc;
}

static fm_status find_reader(const fm_config_reader **out, const char *name, const char *file)
{
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        for (const char *const *a = readers[i]->architectures; *a; a++)
            if (!strcmp(*a, name)) {
                *out = readers[i];
                return FM_OK;
            }
    return refuse_architecture(name, file);
}

static fm_status read_architecture(fm_model_config *c, const json_t *root, fm_json_at at)
{
    const json_t *list = json_object_get(root, "architectures");
    const json_t *name = json_array_get(list, 0);
    if (!json_is_string(name))
        return fm_fail(FM_E_FORMAT, "%s: architectures: expected an array of strings, found %s",
                       at.file, list ? fm_json_kind(json_is_array(list) ? name : list) : "nothing");
    return fm__config_word(c->architecture, sizeof c->architecture, json_string_value(name),
                     "architectures", at);
}

/* --- ids ------------------------------------------------------------------ */

static fm_status add_eos(fm_model_config *c, const json_t *v, const char *file)
{
    const json_int_t id = json_integer_value(v);
    if (!json_is_integer(v) || id < 0 || id >= c->vocab)
        return fm_fail(FM_E_FORMAT, "%s: eos_token_id: expected ids between 0 and %d", file,
                       c->vocab - 1);
    for (int i = 0; i < c->n_eos; i++)
        if (c->eos[i] == id) return FM_OK;
    if (c->n_eos == FM_MAX_EOS)
        return fm_fail(FM_E_FORMAT, "%s: eos_token_id: more than %d ids", file, FM_MAX_EOS);
    c->eos[c->n_eos++] = (int)id;
    return FM_OK;
}

/* An id or a list of ids; those already known are not repeated. */
static fm_status read_eos(fm_model_config *c, const json_t *root, const char *file)
{
    const json_t *v = json_object_get(root, "eos_token_id");
    if (!v || json_is_null(v)) return FM_OK;
    if (!json_is_array(v)) return add_eos(c, v, file);
    for (size_t i = 0; i < json_array_size(v); i++) FM_TRY(add_eos(c, json_array_get(v, i), file));
    return FM_OK;
}

static fm_status read_ids(fm_model_config *c, const json_t *root, fm_json_at at)
{
    int64_t bos = -1;
    FM_TRY(fm_json_opt_int(&bos, root, "bos_token_id", 0, c->vocab - 1, at));
    c->bos = (int)bos;
    return read_eos(c, root, at.file);
}

/* --- the whole ------------------------------------------------------------ */

static fm_status read_root(fm_model_config *out, const json_t *root, const char *file)
{
    const fm_json_at        at     = {file, ""};
    fm_model_config         c      = {0};
    const fm_config_reader *family = NULL;

    if (!json_is_object(root))
        return fm_fail(FM_E_FORMAT, "%s: expected an object, found %s", file, fm_json_kind(root));
    FM_TRY(read_architecture(&c, root, at));
    FM_TRY(find_reader(&family, c.architecture, file));
    FM_TRY(family->read(&c, root, file));
    FM_TRY(read_ids(&c, root, at));
    *out = c;
    return FM_OK;
}

fm_status fm_config_parse(fm_model_config *out, const char *text, size_t len, const char *name,
                          const char *overrides)
{
    json_t *root = NULL;
    FM_TRY(fm_json_parse(&root, text, len, name));
    fm_status rc = fm__config_override(root, overrides);
    if (rc == FM_OK) rc = read_root(out, root, name);
    json_decref(root);
    return rc;
}

static fm_status read_generation_file(fm_model_config *c, const char *path)
{
    json_t *root = NULL;
    FM_TRY(fm_json_load(&root, path));
    const fm_status rc =
        json_is_object(root)
            ? read_eos(c, root, path)
            : fm_fail(FM_E_FORMAT, "%s: expected an object, found %s", path, fm_json_kind(root));
    json_decref(root);
    return rc;
}

/* generation_config.json is optional; where it is, its eos ids count, too. */
static fm_status read_generation(fm_model_config *c, const char *config_path)
{
    const char *slash = strrchr(config_path, '/');
    fm_str      path  = {0};

    fm_str_add(&path, config_path, slash ? (size_t)(slash - config_path + 1) : 0);
    fm_str_puts(&path, "generation_config.json");
    const fm_status rc = access(path.text, F_OK) == 0 ? read_generation_file(c, path.text) : FM_OK;
    fm_str_fini(&path);
    return rc;
}

fm_status fm_config_read(fm_model_config *out, const char *path, const char *overrides)
{
    json_t         *root = NULL;
    fm_model_config c    = {0};

    FM_TRY(fm_json_load(&root, path));
    fm_status rc = fm__config_override(root, overrides);
    if (rc == FM_OK) rc = read_root(&c, root, path);
    if (rc == FM_OK) rc = read_generation(&c, path);
    if (rc == FM_OK) *out = c;
    json_decref(root);
    return rc;
}

fm_status fm_config_of(fm_model_config *out, const fm_model_path *where, const char *overrides)
{
    char file[sizeof where->dir + 16];
    if (where->builtin)
        return fm_config_parse(out, where->builtin, strlen(where->builtin), where->name, overrides);
    snprintf(file, sizeof file, "%s/config.json", where->dir);
    return fm_config_read(out, file, overrides);
}
