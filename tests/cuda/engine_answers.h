/* SPDX-License-Identifier: Apache-2.0 */
/* A few fixed prompts through an engine. */
#ifndef FM_TESTS_CUDA_ENGINE_ANSWERS_H
#define FM_TESTS_CUDA_ENGINE_ANSWERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FM_N_ASKED = 4, FM_N_ANSWER = 10 };

typedef struct {
    const char *dir, *device, *max_running, *chunk, *max_tokens;
    int         no_cache, records;
} fm_engine_asked;

typedef struct {
    int32_t     token[FM_N_ASKED][FM_N_ANSWER];
    int         failed[FM_N_ASKED]; /* it ended with FM_FINISH_ERROR */
    const char *why; /* of a failure */
} fm_answers_of;

int fm_ask_engine(const fm_engine_asked *how, fm_answers_of *out); /* 0: it failed */

#ifdef __cplusplus
}
#endif

#endif
