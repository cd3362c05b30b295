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
    const char *tile; /* --attention-split-tile-size; NULL: as it is */
} fm_engine_asked;

typedef struct {
    int32_t     token[FM_N_ASKED][FM_N_ANSWER];
    int         failed[FM_N_ASKED]; /* it ended with FM_FINISH_ERROR */
    const char *why;                /* of a failure */
} fm_answers_of;

/* Tiers below the pool: with everything demoted after every step. */
typedef struct {
    const char *storage;        /* a directory, or NULL */
    const char *policy, *cache; /* --hicache-write-policy, --kv-cache-dtype */
    int         n_round;        /* the prompts are asked so often; the last answers count */
    int         demotes;
    const char *faults;         /* --hicache-debug-faults; NULL: none */
    int64_t     n_host, n_disk; /* out: tokens that came from host memory, and from files */
    int64_t     n_altered;      /* out: pages in host memory whose checksum did not fit */
} fm_tiers_asked;

int fm_ask_tiered(const fm_engine_asked *how, fm_tiers_asked *t, fm_answers_of *out);
int fm_ask_engine(const fm_engine_asked *how, fm_answers_of *out); /* 0: it failed */

/* What a trace of three rounds has of ops on the device. */
typedef struct {
    uint64_t n_step;             /* passes */
    uint64_t n_embed, n_experts; /* calls; of experts, by layer with experts */
    uint64_t n_beside;           /* calls in the second stream */
    uint64_t n_sample;
    uint64_t device_ns, wall_ns; /* of all ops one after the other; of the trace */
    int      n_span, n_outside;  /* spans of ops, and those outside the steps' time */
} fm_traced;

int fm_ask_traced(const fm_engine_asked *how, const char *trace, fm_answers_of *out, fm_traced *t);

#ifdef __cplusplus
}
#endif

#endif
