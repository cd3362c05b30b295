/* SPDX-License-Identifier: Apache-2.0 */
#include "model_facts.h"

#include "llm/load/config_read.h"

fm_status fm_model_has_tokenizer(int *yes, const fm_options *o)
{
    fm_model_path where;
    FM_TRY(fm_model_path_find(&where, o->model_path));
    *yes = fm_engine_tokenizer_dir(o, &where) != NULL;
    return FM_OK;
}

fm_status fm_model_need_tokenizer(const fm_options *o, const char *command)
{
    int yes;
    FM_TRY(fm_model_has_tokenizer(&yes, o));
    if (yes) return FM_OK;
    return fm_fail(FM_E_ARG,
                   "%s has no tokenizer, and fathom %s works on text; give a directory that has "
                   "one with --tokenizer-path",
                   o->model_path, command);
}

fm_status fm_model_check_context(const fm_options *o)
{
    fm_model_path   where;
    fm_model_config config;
    if (!o->context_length) return FM_OK;
    FM_TRY(fm_model_path_find(&where, o->model_path));
    FM_TRY(fm_config_of(&config, &where, o->json_model_override_args));
    if (o->context_length <= config.max_position) return FM_OK;
    return fm_fail(FM_E_ARG,
                   "--context-length %lld is more than the %d tokens of the model "
                   "(max_position_embeddings of its config.json)",
                   (long long)o->context_length, config.max_position);
}
