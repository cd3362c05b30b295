/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands see of an engine beyond the public header. */
#ifndef FM_LLM_ENGINE_H
#define FM_LLM_ENGINE_H

#include "fathom/fathom.h"
#include "llm/engine/events.h"
#include "llm/grammar/grammar.h"
#include "llm/kv/kv_cache.h"
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

/* Where an engine with these options finds its tokenizer; NULL: it works on ids alone. */
const char *fm_engine_tokenizer_dir(const fm_options *o, const fm_model_path *where);

typedef struct {
    fm_plan        plan;
    fm_sched_stats sched;
    fm_kv_stats    kv;
    int            n_free_page, n_idle_page; /* idle: cached, held by nobody */
    int            n_thread;
    int            steps_per_round; /* in which every sequence gets a token; 0: not known */
    double         load_seconds;
    double         forward_seconds;     /* inside forward passes */
    double         last_gen_throughput; /* output tokens per second of the last step that decoded */
} fm_engine_info;

fm_engine_info         fm_engine_get_info(const fm_engine *e);
const fm_model_config *fm_engine_config(const fm_engine *e);
const fm_tokenizer    *fm_engine_tokenizer(const fm_engine *e); /* NULL: ids alone */
int                    fm_engine_context(const fm_engine *e);   /* tokens of one sequence */
int                    fm_engine_max_running(const fm_engine *e); /* sequences in one step */
fm_grammars           *fm_engine_grammars(fm_engine *e); /* any thread may use them; NULL: ids alone */
void                   fm_engine_flush_cache(fm_engine *e);

/* Instead of fm_engine_poll: all events at once, behind those already in *out. */
void fm_engine_take_events(fm_engine *e, fm_events *out);
void fm_engine_cancel_all(fm_engine *e);

/* Logits of one text's positions, each computed as it would be when the first
 * n_prompt tokens are the prompt and the rest was generated: position
 * n_prompt-1 onwards, logits [n - n_prompt + 1][V].  Leaves the cache as it
 * was but for the prompt.  For comparing with goldens. */
fm_status fm_engine_score(fm_engine *e, const int32_t *token, int n, int n_prompt, float *logits);

/* The run behind the engine, for hooks that look at what ops write (op/hook.h); NULL: it is not
 * all in this process's memory, but on a GPU or on several ranks. */
struct fm_run *fm_engine_run(fm_engine *e);

#endif
