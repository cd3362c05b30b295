/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a model before its weights are read, so that what can never
 * work is refused within a second. */
#ifndef FM_APP_MODEL_FACTS_H
#define FM_APP_MODEL_FACTS_H

#include "llm/engine.h"

/* Will the engine have a tokenizer?  FM_E_IO: there is no such model. */
fm_status fm_model_has_tokenizer(int *yes, const fm_options *o);

/* FM_E_ARG: it will have none, and the command works on text. */
fm_status fm_model_need_tokenizer(const fm_options *o, const char *command);

/* FM_E_ARG: --context-length is more than the model has positions. */
fm_status fm_model_check_context(const fm_options *o);

#endif
