/* SPDX-License-Identifier: Apache-2.0 */
/* Finds fathom-tiny, the model that comes with the program. */
#ifndef FM_APP_DEFAULT_MODEL_H
#define FM_APP_DEFAULT_MODEL_H

#include "llm/options.h"

/* Where no model was named: fathom-tiny, installed beside the program or in
 * the tree it was built from.  FM_E_ARG when it is in neither place. */
fm_status fm_default_model(fm_options *o);

/* The name fathom-tiny becomes the folder of that model; others stay. */
fm_status fm_named_model(fm_options *o);

#endif
