/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls that open an engine and tell about it; the rest of them are
 * where their work is done. */
#include <stdio.h>

#include "fathom/fathom.h"
#include "llm/engine.h"
#include "llm/text/chat.h"

const char *fm_version(void)
{
    return FM_VERSION;
}

fm_status fm_engine_open(fm_engine **out, const fm_options *o)
{
    if (!out) return fm_fail(FM_E_ARG, "fm_engine_open: out is NULL");
    *out = NULL;
    if (!o) return fm_fail(FM_E_ARG, "fm_engine_open: options are NULL");
    if (!o->model_path)
        return fm_fail(FM_E_ARG, "fm_engine_open: the option \"model-path\" is not set");
    return fm_engine_open_shown(out, o, NULL);
}

fm_status fm_engine_grammar(fm_grammar **out, fm_engine *e, fm_grammar_kind kind, const char *text,
                            size_t len)
{
    if (!out) return fm_fail(FM_E_ARG, "fm_engine_grammar: out is NULL");
    *out = NULL;
    if (!e || !text) return fm_fail(FM_E_ARG, "fm_engine_grammar: engine or text is NULL");
    fm_grammars *grammars = fm_engine_grammars(e);
    if (!grammars) return fm_fail(FM_E_ARG, "a grammar needs a tokenizer");
    return fm_grammars_get(out, grammars, kind, text, len, 0);
}

fm_status fm_engine_facts(const fm_engine *e, fm_model_facts *out)
{
    if (!e || !out) return fm_fail(FM_E_ARG, "fm_engine_facts: engine or facts are NULL");
    const fm_model_config *c    = fm_engine_config(e);
    const fm_tokenizer    *t    = fm_engine_tokenizer(e);
    const fm_engine_info   info = fm_engine_get_info(e);
    *out                        = (fm_model_facts){.vocab         = c->vocab,
                                                   .hidden        = c->hidden,
                                                   .n_layer       = c->n_layer,
                                                   .n_head        = c->n_head,
                                                   .n_expert      = c->n_expert,
                                                   .bos           = c->bos,
                                                   .eos           = c->n_eos ? c->eos[0] : -1,
                                                   .has_tokenizer = t != NULL,
                                                   .context       = fm_engine_context(e),
                                                   .max_running   = fm_engine_max_running(e),
                                                   .kv_tokens     = info.plan.max_tokens,
                                                   .weight_bytes  = (int64_t)info.plan.weights};
    snprintf(out->architecture, sizeof out->architecture, "%s", c->architecture);
    if (t)
        snprintf(out->chat_style, sizeof out->chat_style, "%s",
                 fm_chat_style_name(fm_chat_style_of(t)));
    return FM_OK;
}
