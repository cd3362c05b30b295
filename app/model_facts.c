/* SPDX-License-Identifier: Apache-2.0 */
#include "model_facts.h"

#include <string.h>

#include "base/str.h"
#include "llm/load/config_read.h"
#include "llm/text/tokenizer.h"

fm_status fm_model_config_at(fm_model_config *out, const fm_model_path *where, const fm_options *o)
{
    const char *over = o->json_model_override_args;
    if (where->builtin)
        return fm_config_parse(out, where->builtin, strlen(where->builtin), where->name, over);
    fm_str file = {0};
    fm_str_printf(&file, "%s/config.json", where->dir);
    const fm_status rc = fm_config_read(out, file.text, over);
    fm_str_fini(&file);
    return rc;
}

fm_status fm_model_has_tokenizer(int *yes, const fm_options *o)
{
    fm_model_path where;
    FM_TRY(fm_model_path_find(&where, o->model_path));
    *yes = !o->skip_tokenizer_init &&
           (o->tokenizer_path || (*where.dir && fm_tokenizer_exists(where.dir)));
    return FM_OK;
}

fm_status fm_model_check_context(const fm_options *o)
{
    fm_model_path   where;
    fm_model_config config;
    if (!o->context_length) return FM_OK;
    FM_TRY(fm_model_path_find(&where, o->model_path));
    FM_TRY(fm_model_config_at(&config, &where, o));
    if (o->context_length <= config.max_position) return FM_OK;
    return fm_fail(FM_E_ARG,
                   "--context-length %lld is more than the %d tokens of the model "
                   "(max_position_embeddings of its config.json)",
                   (long long)o->context_length, config.max_position);
}
