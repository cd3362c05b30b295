/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmark must know of the server: the model's name, its tokenizer
 * or at least how many ids there are, and the longest sequence. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_online.h"
#include "json/read.h"
#include "llm/load/config_read.h"

typedef struct {
    json_t *body; /* NULL: no JSON */
    int     status;
    char    why[256];
} fetched;

static void on_done(void *ctx, const fm_client_reply *r)
{
    fetched *f = ctx;
    f->status  = r->status;
    if (r->why) strncpy(f->why, r->why, sizeof f->why - 1);
    if (r->status == 200 && r->body_len)
        (void)fm_json_parse(&f->body, r->body, r->body_len, "the server's reply");
}

/* One call, waited for. */
static fetched fetch(fm_client *c, const char *path, const char *body)
{
    fetched              f    = {0};
    const fm_client_call call = {.path     = path,
                                 .body     = body,
                                 .body_len = body ? strlen(body) : 0,
                                 .done     = on_done,
                                 .ctx      = &f};
    if (fm_client_send(c, &call) != FM_OK || fm_client_run(c) != FM_OK)
        strncpy(f.why, fm_why(), sizeof f.why - 1);
    return f;
}

static int int_of(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    const int64_t n = json_is_integer(v) ? json_integer_value(v) : 0;
    return n > 0 && n < INT32_MAX ? (int)n : 0;
}

static fm_status ask_models(fm_online_server *s, fm_client *c, const char *url, const char *name)
{
    fetched       f     = fetch(c, "/v1/models", NULL);
    const json_t *first = json_array_get(json_object_get(f.body, "data"), 0);
    const char   *id    = json_string_value(json_object_get(first, "id"));
    s->context          = int_of(first, "max_model_len");
    if (name) id = name;
    if (id) s->model = strdup(id);
    json_decref(f.body);
    if (f.status == 0) return fm_fail(FM_E_IO, "%s: no answer from the server: %s", url, f.why);
    if (f.status == 401 || f.status == 403)
        return fm_fail(FM_E_ARG, "%s: the server asks for a key; give --api-key", url);
    if (!s->model) s->model = strdup("default");
    return FM_OK;
}

/* The tokenizer of a directory or a name in the cache; none is fine. */
static fm_status open_tokenizer(fm_online_server *s, const char *where)
{
    fm_model_path path;
    if (!where || !*where) return FM_OK;
    if (fm_tokenizer_exists(where)) return fm_tokenizer_open(&s->tokenizer, where);
    if (fm_model_path_find(&path, where) != FM_OK) return FM_OK;
    return *path.dir && fm_tokenizer_exists(path.dir) ? fm_tokenizer_open(&s->tokenizer, path.dir)
                                                      : FM_OK;
}

static fm_status read_vocab(fm_online_server *s, const fm_options *engine)
{
    if (!engine->model_path) return FM_OK;
    fm_model_path   path;
    fm_model_config config;
    FM_TRY(fm_model_path_find(&path, engine->model_path));
    const fm_status rc = fm_config_of(&config, &path, engine->json_model_override_args);
    if (rc != FM_OK) return s->tokenizer ? FM_OK : rc; /* a tokenizer alone will do */
    s->vocab = config.vocab;
    return FM_OK;
}

/* The command line first, then what the server says of itself, if it is here. */
static fm_status find_tokenizer(fm_online_server *s, fm_client *c, const fm_options *engine)
{
    const char *asked = engine->tokenizer_path ? engine->tokenizer_path : engine->model_path;
    if (engine->tokenizer_path) {
        FM_TRY(fm_tokenizer_open(&s->tokenizer, engine->tokenizer_path));
    } else if (!engine->skip_tokenizer_init) {
        FM_TRY(open_tokenizer(s, asked));
    }
    FM_TRY(read_vocab(s, engine));

    fetched f = fetch(c, "/model_info", NULL);
    if (!s->vocab) s->vocab = int_of(f.body, "vocab_size");
    fm_status rc = FM_OK;
    if (!asked && !s->tokenizer && !engine->skip_tokenizer_init) {
        const char *named = json_string_value(json_object_get(f.body, "tokenizer_path"));
        if (!named || !*named) named = json_string_value(json_object_get(f.body, "model_path"));
        rc = open_tokenizer(s, named);
    }
    json_decref(f.body);
    return rc;
}

fm_status fm_online_server_open(fm_online_server *s, fm_client *c, const char *url,
                                const fm_online_options *o, const fm_options *engine)
{
    FM_TRY(ask_models(s, c, url, o->served_model_name));
    FM_TRY(find_tokenizer(s, c, engine));
    s->info = fetch(c, "/server_info", NULL).body;
    if (!s->vocab && s->tokenizer) s->vocab = fm_tokenizer_size(s->tokenizer);
    if (!s->vocab)
        return fm_fail(FM_E_ARG, "%s: the server does not say how many token ids it has; give "
                                 "--tokenizer-path or --model-path", url);
    return FM_OK;
}

void fm_online_server_close(fm_online_server *s)
{
    fm_tokenizer_close(s->tokenizer);
    json_decref(s->info);
    free(s->model);
    *s = (fm_online_server){0};
}

fm_status fm_online_flush(fm_client *c)
{
    fetched f = fetch(c, "/flush_cache", "{}");
    json_decref(f.body);
    return f.status == 200
               ? FM_OK
               : fm_fail(FM_E_IO, "--flush-cache: the server answers with status %d", f.status);
}

static double number_of(const json_t *o, const char *key)
{
    const json_t *x = json_object_get(o, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

void fm_online_ask_drafts(fm_online_metrics *m, fm_client *c, fm_online_server *s)
{
    json_t *info = fetch(c, "/server_info", NULL).body;
    if (!info) return;
    json_decref(s->info);
    s->info             = info;
    const json_t *state = json_array_get(json_object_get(info, "internal_states"), 0);
    m->accept_length    = number_of(state, "avg_spec_accept_length");
    m->accept_rate      = number_of(state, "spec_accept_rate");
}
