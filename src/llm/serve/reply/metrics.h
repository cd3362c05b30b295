/* SPDX-License-Identifier: Apache-2.0 */
/* What the server counts, and its Prometheus text.  The loop's thread alone. */
#ifndef FM_LLM_SERVE_REPLY_METRICS_H
#define FM_LLM_SERVE_REPLY_METRICS_H

#include "llm/serve/loop/engine_thread.h"

enum { FM__MAX_BUCKETS = 40 };

typedef struct {
    const double *bound; /* [n_bound] ascending; NULL until the first value */
    int           n_bound;
    uint64_t      count[FM__MAX_BUCKETS + 1]; /* not cumulative; the last is above all bounds */
    double        sum;
} fm__histogram;

typedef struct {
    fm__histogram ttft, itl, e2e, queue_time;       /* seconds */
    fm__histogram prompt_tokens, generation_tokens; /* tokens */
    int64_t       n_prompt_token, n_output_token, n_cached_token;
    int64_t       n_cached_host, n_cached_storage; /* of n_cached_token */
    int64_t       n_request, n_aborted, n_refused; /* refused: 429 */
    int64_t       n_nonfinite; /* answers that failed: their logits were NaN or infinite */
    int64_t       n_status[6];                     /* replies by hundred */
    int           n_connection;
    int           n_waiting; /* calls not yet handed to the engine */
} fm__metrics;

void fm__metrics_init(fm__metrics *m);
void fm__histogram_add(fm__histogram *h, double x, uint64_t times);
void fm__put_metrics(fm_str *out, const fm__metrics *m, const fm__engine_state *s,
                     const char *prefix, const char *model, int context);

#endif
