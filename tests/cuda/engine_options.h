/* SPDX-License-Identifier: Apache-2.0 */
/* An engine for a test, from a list of options. */
#ifndef FM_TESTS_CUDA_ENGINE_OPTIONS_H
#define FM_TESTS_CUDA_ENGINE_OPTIONS_H

#include "llm/engine.h"

typedef struct {
    const char *name, *value;
} fm_engine_option;

/* hooks: NULL is fine. */
fm_status fm_engine_open_with(fm_engine **e, const fm_engine_option *option, size_t n,
                              const fm_engine_hooks *hooks);

#endif
