/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an engine: what runs is cancelled, followers are dismissed, the
 * ranks of the job leave together. */
#include <stdlib.h>

#include "llm/engine/engine_internal.h"
#include "llm/engine/replicas.h"

/* Pages are given back before the books are closed. */
static void cancel_jobs(fm_engine *e)
{
    if (fm__engine_drain(e) != FM_OK) return;
    fm_engine_cancel_all(e);
    for (int i = 0; i < fm__n_partition(e); i++) fm__post_ended(e, fm__partition(e, i));
}

static void dismiss(fm_engine *e)
{
    if (!e->is_open || !e->layout.is_leader) return;
    fm_status rc = fm__tiers_finish(e);
    if (rc == FM_OK) rc = fm__replicas_hang_up(e->replicas);
    if (rc == FM_OK && e->courier) rc = fm_courier_quit(e->courier);
    if (rc != FM_OK) fm_world_abort(e->world, "%s", fm_why());
}

/* Collective: every rank of an engine that was open comes here. */
static void report(fm_engine *e)
{
    fm_str text = {0};
    if (!e->is_open) return;
    if (e->run->ops->report && e->run->fault == FM_OK) e->run->ops->report(e->run, &text);
    if (e->reports && fm_world_report(e->world, &text) != FM_OK) fm_str_clear(&text);
    if (text.len && e->report) e->report(text.text);
    fm_str_fini(&text);
}

static void free_leader(fm_engine *e)
{
    fm__partitions_destroy(e);
    fm__jobs_fini(&e->jobs);
    fm_events_fini(&e->events);
    fm_str_fini(&e->fresh);
    fm__replicas_destroy(e->replicas);
    for (int i = 0; e->sampler && i < e->limits.n_thread; i++) fm_sampler_destroy(e->sampler[i]);
    free(e->sampler);
    free(e->sampled);
    free(e->token);
    free(e->draw);
    free(e->draft.id);
    for (int i = 0; i < e->draft.n_ngram; i++) fm_ngram_destroy(e->draft.ngram[i]);
    free(e->draft.ngram);
    fm_grammars_destroy(e->grammars);
    fm_tokenizer_scratch_destroy(e->scratch);
    fm_tokenizer_close(e->tokenizer);
}

void fm_engine_close(fm_engine *e)
{
    if (!e) return;
    cancel_jobs(e);
    dismiss(e);
    report(e);
    fm__tracing_close(e);
    free_leader(e);
    fm__open_close_tiers(e);
    fm_run_destroy(e->run);
    free(e->draft.token);
    fm_courier_destroy(e->courier);
    fm_weights_fini(&e->weights);
    if (e->slab.base && !e->backend->is_host) e->backend->free(e->slab.base);
    else if (e->slab.base) fm_shared_close(&e->slab);
    fm_weights_fini(&e->beside.weights);
    if (e->backend && e->backend->also) e->backend->also->free(e->beside.slab);
    fm_source_close(e->source);
    fm_threads_destroy(e->threads);
    fm_groups_close(&e->groups);
    if (!e->borrows_world) fm_world_close(e->world);
    free(e);
}
