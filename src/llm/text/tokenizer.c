/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mapped_file.h"
#include "llm/text/tokenizer_internal.h"

static fm_tokenizer *new_tokenizer(void)
{
    fm_tokenizer *t = calloc(1, sizeof *t);
    if (t) t->bos = t->eos = -1;
    return t;
}

static void seal(fm_tokenizer *t)
{
    for (int i = 0; i < 2; i++) fm__added_seal(&t->added[i]);
}

void fm_tokenizer_close(fm_tokenizer *t)
{
    if (!t) return;
    for (int i = 0; i < 2; i++) fm__added_fini(&t->added[i]);
    fm__splits_fini(&t->splits);
    fm__bpe_fini(&t->bpe);
    fm__vocab_fini(&t->vocab);
    free(t->chat_template);
    free(t);
}

fm_status fm_tokenizer_parse(fm_tokenizer **out, const char *json, size_t len, const char *name)
{
    fm_status     rc   = FM_OK;
    json_t       *root = NULL;
    fm_tokenizer *t    = new_tokenizer();
    if (!t) return fm_fail(FM_E_OOM, "tokenizer");
    FM_GO(fm_json_parse(&root, json, len, name));
    FM_GO(fm__tokenizer_read_json(t, root, name));
    seal(t);
    FM_GO(fm__tokenizer_read_config(t, NULL, name));
    *out = t;
    t    = NULL;
out:
    json_decref(root);
    fm_tokenizer_close(t);
    return rc;
}

/* The vocabulary from whichever file is there; tokenizer.json goes first. */
static fm_status read_vocabulary(fm_tokenizer *t, const char *json_path, const char *tiktoken_path,
                                 const json_t *config, const char *config_path)
{
    if (access(json_path, F_OK) != 0 && access(tiktoken_path, F_OK) == 0)
        return fm__tokenizer_read_tiktoken(t, tiktoken_path, config, config_path);
    json_t *root = NULL;
    FM_TRY(fm_json_load(&root, json_path));
    const fm_status rc = fm__tokenizer_read_json(t, root, json_path);
    json_decref(root);
    return rc;
}

/* Newer checkpoints keep the template in a file of its own. */
static fm_status read_template_file(fm_tokenizer *t, const char *path)
{
    if (access(path, F_OK) != 0) return FM_OK;
    fm_mapped_file f = {0};
    FM_TRY(fm_mapped_file_open(&f, path));
    char *text = calloc(1, f.size + 1);
    if (text && f.size) memcpy(text, f.data, f.size);
    fm_mapped_file_close(&f);
    if (!text) return fm_fail(FM_E_OOM, "%s", path);
    free(t->chat_template);
    t->chat_template = text;
    return FM_OK;
}

enum { IN_JSON, IN_TIKTOKEN, IN_CONFIG, IN_TEMPLATE, N_FILE };
static const char *const file_name[N_FILE] = {"tokenizer.json", "tiktoken.model",
                                              "tokenizer_config.json", "chat_template.jinja"};

int fm_tokenizer_exists(const char *dir)
{
    int found = 0;
    for (int i = IN_JSON; i <= IN_TIKTOKEN; i++) {
        fm_str path = {0};
        fm_str_printf(&path, "%s/%s", dir, file_name[i]);
        found |= access(path.text, F_OK) == 0;
        fm_str_fini(&path);
    }
    return found;
}

fm_status fm_tokenizer_open(fm_tokenizer **out, const char *dir)
{
    fm_status     rc     = FM_OK;
    json_t       *config = NULL;
    fm_str        path[N_FILE] = {0};
    fm_tokenizer *t            = new_tokenizer();
    if (!t) return fm_fail(FM_E_OOM, "tokenizer");
    for (int i = 0; i < N_FILE; i++) fm_str_printf(&path[i], "%s/%s", dir, file_name[i]);

    if (access(path[IN_CONFIG].text, F_OK) == 0) FM_GO(fm_json_load(&config, path[IN_CONFIG].text));
    FM_GO(read_vocabulary(t, path[IN_JSON].text, path[IN_TIKTOKEN].text, config,
                          path[IN_CONFIG].text));
    seal(t);
    FM_GO(fm__tokenizer_read_config(t, config, path[IN_CONFIG].text));
    FM_GO(read_template_file(t, path[IN_TEMPLATE].text));
    *out = t;
    t    = NULL;
out:
    for (int i = 0; i < N_FILE; i++) fm_str_fini(&path[i]);
    json_decref(config);
    fm_tokenizer_close(t);
    return rc;
}

int fm_tokenizer_size(const fm_tokenizer *t)
{
    return t->vocab.size;
}

int32_t fm_tokenizer_bos(const fm_tokenizer *t)
{
    return t->bos;
}

int32_t fm_tokenizer_eos(const fm_tokenizer *t)
{
    return t->eos;
}

int fm_tokenizer_adds_bos(const fm_tokenizer *t)
{
    return t->adds_bos;
}

int32_t fm_token_id(const fm_tokenizer *t, const char *content)
{
    const int32_t id = fm__added_id(&t->added[0], content, strlen(content));
    return id >= 0 ? id : fm__added_id(&t->added[1], content, strlen(content));
}

const char *fm_tokenizer_chat_template(const fm_tokenizer *t)
{
    return t->chat_template;
}

const char *fm_token_bytes(const fm_tokenizer *t, int32_t id, size_t *n)
{
    *n = 0;
    if (id < 0 || id >= t->vocab.size || t->vocab.token[id].n == 0) return "";
    *n = t->vocab.token[id].n;
    return t->vocab.bytes.text + t->vocab.token[id].at;
}

int fm_token_is_special(const fm_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->vocab.size && t->vocab.token[id].special;
}
