/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands see of an engine beyond the public header. */
#ifndef FM_LLM_ENGINE_H
#define FM_LLM_ENGINE_H

#include "fathom/fathom.h"
#include "llm/engine/events.h"
#include "llm/engine/tiers_info.h"
#include "llm/grammar/grammar.h"
#include "llm/kv/kv_cache.h"
#include "llm/kv/page_feed.h"
#include "llm/load/model_path.h"
#include "llm/weights/config.h"
#include "llm/options.h"
#include "llm/plan/plan.h"
#include "llm/sched/sched.h"
#include "llm/text/tokenizer.h"

/* What an engine tells while it opens and closes, on rank 0 alone. */
typedef struct {
    /* Once the plan is made, before anything is loaded; loading then draws a
     * progress bar.  There are as many plans as kinds of memory.  `ranks` is a
     * table of ranks and layout; NULL: there is one rank. */
    void (*plan)(const fm_plan *plan, int n_plan, const char *model, const char *ranks);
    void (*report)(const char *text); /* at the end, if options ask for one */
} fm_engine_hooks;

/* Like fm_engine_open.  NULL hooks: silent; NULL members, too. */
fm_status fm_engine_open_shown(fm_engine **out, const fm_options *o, const fm_engine_hooks *hooks);

/* What an engine with these options would hold, on this rank. */
typedef struct {
    fm_plan       plan[2]; /* one for each kind of memory */
    int           n_plan;
    int           is_dummy; /* weights would be random numbers, not files */
    fm_model_path path;
} fm_engine_planned;

/* Everything an engine does before it loads weights, by all ranks of a world that stays the
 * caller's.  Errors are those of opening: FM_E_OOM says by how much it does not fit. */
fm_status fm_engine_plan(fm_engine_planned *out, const fm_options *o, fm_world *world);

/* Where an engine with these options finds its tokenizer; NULL: it works on ids alone. */
const char *fm_engine_tokenizer_dir(const fm_options *o, const fm_model_path *where);

typedef struct {
    fm_plan        plan;
    fm_sched_stats sched;
    fm_kv_stats    kv;
    fm_tiers_info  tiers;
    int            n_free_page, n_idle_page; /* idle: cached, held by no request */
    int            n_thread;
    int            steps_per_round; /* in which every sequence gets a token; 0: not known */
    double         load_seconds;
    double         forward_seconds;     /* inside forward passes */
    double         host_seconds;        /* in steps, around forward passes */
    double         gap_seconds;         /* between steps, with work left to do */
    double         last_gen_throughput; /* output tokens per second of the last step that decoded */
    int            max_draft; /* of one request in a step; 0: no speculation */
    double         simulated_accept_length; /* 0: drafts are verified */
} fm_engine_info;

fm_engine_info         fm_engine_get_info(const fm_engine *e);
const fm_model_config *fm_engine_config(const fm_engine *e);
const fm_tokenizer    *fm_engine_tokenizer(const fm_engine *e); /* NULL: ids alone */
int                    fm_engine_context(const fm_engine *e);   /* tokens of one sequence */
int                    fm_engine_max_running(const fm_engine *e); /* sequences in one step */
fm_grammars           *fm_engine_grammars(fm_engine *e); /* any thread may use them; NULL: ids alone */
fm_page_feed          *fm_engine_page_feed(fm_engine *e); /* of this process's pages; any thread */
void                   fm_engine_flush_cache(fm_engine *e);

/* While nothing runs: saves what the tiers below the pool are to keep, as much as can be begun at
 * once.  *more: something is on its way, call again in a moment.  Fails as a step does. */
fm_status fm_engine_save(fm_engine *e, int *more);

/* Records where time goes (trace/trace.h) from here on, on all ranks, to `file` (of several ranks,
 * file.rankN); `mib`: 0 is the default size.  Between steps, by the leader.  FM_E_ARG: it records
 * already, or not; FM_E_NOSUP: replicas record from the start or not at all (--trace). */
fm_status fm_engine_trace_begin(fm_engine *e, const char *file, int64_t mib);
fm_status fm_engine_trace_end(fm_engine *e);
/* The first tokens of an answer that another engine began. */
typedef struct {
    const int32_t *token; /* [n] */
    int32_t        n;
} fm_begun;

/* Like fm_engine_submit, for answers whose first tokens are known: begun[i] is of answer i.
 * Their events come first and without log-probabilities; then each answer goes on with the
 * tokens that one engine would have given it, to the bit, if sampling is greedy or seeded.
 * FM_E_ARG: the tokens cannot be those of such an answer. */
fm_status fm_engine_resume(fm_engine *e, const fm_prompt *p, const fm_begun *begun, uint64_t *id);

/* Instead of fm_engine_poll: all events at once, behind those already in *out. */
void fm_engine_take_events(fm_engine *e, fm_events *out);
void fm_engine_cancel_all(fm_engine *e);

/* Teacher-forced logits, for comparing with goldens: each position is computed as if the first
 * n_prompt tokens were the prompt and the others generated. From position n_prompt-1 on, logits
 * [n - n_prompt + 1][V]. Of what it computes, only the prompt stays in the cache. */
fm_status fm_engine_score(fm_engine *e, const int32_t *token, int n, int n_prompt, float *logits);

/* The run behind the engine, for hooks that look at what ops write (op/hook.h); NULL: it is not
 * all in this process's memory, but on a GPU or on several ranks. */
struct fm_run *fm_engine_run(fm_engine *e);

#endif
