/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of every kind through one engine, some coming later, some leaving. */
#ifndef FM_TESTS_CUDA_ENGINE_WORKLOAD_H
#define FM_TESTS_CUDA_ENGINE_WORKLOAD_H

#ifdef __cplusplus
extern "C" {
#endif

enum { FM_WORKLOAD_BYTES = 1 << 16 };

typedef struct {
    const char *dir, *tokenizer, *max_running, *chunk, *max_tokens;
    int         no_cache, no_overlap, records;
    const char *const *more; /* options and their values by turns, then NULL; or NULL */
} fm_workload;

/* All events as text, those of an answer together; 0: it failed, *why says how.
 * A rank that does not lead follows, and has no text. */
int fm_run_workload(const fm_workload *w, char transcript[FM_WORKLOAD_BYTES], const char **why);

#ifdef __cplusplus
}
#endif

#endif
