/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the engine share. */
#ifndef FM_LLM_ENGINE_INTERNAL_H
#define FM_LLM_ENGINE_INTERNAL_H

#include "base/str.h"
#include "device/host_threads.h"
#include "llm/engine.h"
#include "llm/load/source.h"
#include "llm/model/weights.h"
#include "llm/op/run.h"
#include "llm/sample/sample.h"
#include "llm/text/detokenize.h"
#include "llm/text/stop.h"

/* One answer being written: a request and what turns its tokens into text. */
typedef struct fm_job {
    fm_request     request; /* request.user = the job */
    uint64_t       id;
    int            index;
    fm_detokenizer detok;
    fm_stop_filter stop;
    int            stopped;  /* index of the stop string that matched, or -1 */
    int            reported; /* its last event is out */
    double         submitted; /* fm_now() */
    fm_logit_bias *bias;
    struct fm_job *next;
} fm_job;

/* An event whose text lies in the outbox. */
typedef struct {
    fm_event   ev;
    size_t     text_at;
    fm_sampled sampled;
} fm_posted;

typedef struct {
    fm_posted *post; /* [cap] */
    int        n, next, cap;
    fm_str     text;
} fm_outbox;

struct fm_engine {
    fm_model_config config;
    fm_shard        shard;
    fm_source      *source;
    fm_weights      weights;
    void           *slab; /* of the weights */
    size_t          slab_bytes;
    fm_comm         world;
    fm_plan         plan;
    fm_threads     *threads; /* the team and its cores */
    fm_run_limits   limits;
    fm_run         *run;
    fm_kv          *kv;
    fm_sched       *sched;
    fm_sampler    **sampler; /* [n_thread] */
    fm_sampled     *sampled; /* [max_out] of the step in flight */
    fm_request    **row;     /* [max_out] behind each */
    int32_t        *token;   /* [max_out] */

    fm_tokenizer         *tokenizer;
    fm_tokenizer_scratch *scratch;
    fm_job               *jobs; /* not yet reported done */
    fm_outbox             outbox;
    uint64_t              next_id, seed;
    double                load_seconds, forward_seconds, last_gen_throughput;
};

void fm__engine_post(fm_engine *e, int n_out); /* events of the step, then its ended jobs */
void fm__engine_free_jobs(fm_engine *e);

#endif
