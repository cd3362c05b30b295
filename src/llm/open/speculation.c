/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an engine: where drafts come from, by the options and by what the model has. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "llm/open/open_internal.h"

int fm__is_one_of(const char *word, const char *list)
{
    const size_t n = strlen(word);
    for (const char *at = strstr(list, word); n && at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return 1;
    return 0;
}

/* --- options --------------------------------------------------------------- */

static fm_status read_algorithm(fm_drafting *d, const char *word)
{
    if (fm__is_one_of(word, "NGRAM NEXTN,NGRAM NGRAM,NEXTN EAGLE,NGRAM NGRAM,EAGLE"))
        d->is_ngram = 1;
    if (fm__is_one_of(word, "NEXTN EAGLE auto NEXTN,NGRAM NGRAM,NEXTN EAGLE,NGRAM NGRAM,EAGLE"))
        d->is_chain = 1;
    if (d->is_ngram || d->is_chain) return FM_OK;
    if (fm__is_one_of(word, "EAGLE3 STANDALONE DFLASH DSPARK")) {
        FM_WARN("engine",
                "--speculative-algorithm %s: drafts of a second model are not made; NEXTN "
                "drafts with the model's own MTP layer.  The output is the same",
                word);
        return FM_OK;
    }
    return fm_fail(FM_E_ARG,
                   "--speculative-algorithm %s is none of NEXTN, NGRAM, NEXTN,NGRAM, auto", word);
}

static fm_status check_numbers(const fm_options *o)
{
    if (o->speculative_eagle_topk != 1)
        return fm_fail(FM_E_NOSUP, "--speculative-eagle-topk %lld: drafts are a chain, so it is 1",
                       (long long)o->speculative_eagle_topk);
    if (o->ngram_max < o->ngram_min)
        return fm_fail(FM_E_ARG,
                       "--speculative-ngram-max-match-window-size %lld is below the least of %lld",
                       (long long)o->ngram_max, (long long)o->ngram_min);
    if (o->ngram_depth && o->ngram_depth <= o->ngram_min)
        return fm_fail(
            FM_E_ARG,
            "--speculative-ngram-max-trie-depth %lld: %lld tokens that match and a draft "
            "are longer",
            (long long)o->ngram_depth, (long long)o->ngram_min);
    return FM_OK;
}

/* SGLang counts the row of the sequence's own token among the draft tokens, and where drafts are
 * a chain its steps decide. */
static int drafts_of_a_step(const fm_options *o)
{
    enum { USUAL = 3 };
    const int64_t steps = o->speculative_num_steps, rows = o->speculative_num_draft_tokens;
    if (!steps && !rows) return USUAL;
    if (steps && rows && rows != steps + 1)
        FM_WARN("engine",
                "--speculative-num-draft-tokens %lld is not --speculative-num-steps + 1; the steps "
                "decide: %lld drafts",
                (long long)rows, (long long)steps);
    if (!steps && rows == 1)
        FM_WARN("engine", "--speculative-num-draft-tokens 1: the one row is that of the sequence's "
                          "own token, so there are no drafts; the output is the same");
    return (int)(steps ? steps : rows - 1);
}

/* A path of SGLang's trie is the tokens that match and at least one that follows. */
static int longest_match(const fm_options *o)
{
    const int64_t most = o->ngram_depth ? o->ngram_depth - 1 : o->ngram_max;
    return (int)(most < o->ngram_max ? most : o->ngram_max);
}

fm_status fm__open_check_drafts(opening *p)
{
    const fm_options *o = p->o;
    fm_drafting      *d = &p->e->draft;
    if (!o->speculative_algorithm || !*o->speculative_algorithm) return FM_OK;
    FM_TRY(read_algorithm(d, o->speculative_algorithm));
    FM_TRY(check_numbers(o));
    if (!d->is_ngram && !d->is_chain) return FM_OK;
    d->most        = drafts_of_a_step(o);
    d->min_n       = (int)o->ngram_min;
    d->max_n       = longest_match(o);
    d->is_adaptive = !o->disable_speculative_adaptive;
    if (!d->most) d->is_ngram = d->is_chain = 0;
    return FM_OK;
}

static fm_status check_simulation(opening *p)
{
    const double length = p->o->speculative_simulate_accept_length;
    if (!(length > 0)) return FM_OK;
    if (!p->dummy)
        return fm_fail(FM_E_ARG, "--speculative-simulate-accept-length is for dummy weights: it "
                                 "accepts drafts whatever they are");
    if (!p->e->draft.is_chain)
        return fm_fail(FM_E_ARG,
                       "--speculative-simulate-accept-length %g: there are no drafts to accept; it "
                       "is for --speculative-algorithm NEXTN with at least one step",
                       length);
    if (length < 1 || length > p->e->draft.most + 1)
        return fm_fail(FM_E_ARG,
                       "--speculative-simulate-accept-length %g: with NEXTN and %d drafts "
                       "it is from 1 to %d",
                       length, p->e->draft.most, p->e->draft.most + 1);
    p->sched.simulated    = fm_acceptance_for(length, p->e->draft.most);
    p->e->draft.simulated = length;
    return FM_OK;
}

/* --- the model ------------------------------------------------------------- */

/* A model without an MTP layer drafts nothing with it; the output is the same. */
fm_status fm__open_drafts(opening *p)
{
    fm_engine   *e = p->e;
    fm_drafting *d = &e->draft;
    FM_TRY(check_simulation(p));
    if (!d->is_chain) return FM_OK;
    if (fm_source_mtp_layers(e->source, &e->config) > 0 && e->model->draft) {
        e->layout.shard.n_mtp = 1;
        return FM_OK;
    }
    if (strcmp(p->o->speculative_algorithm, "auto"))
        FM_WARN("engine",
                "--speculative-algorithm %s: the model has no MTP layer%s; the output is "
                "the same",
                p->o->speculative_algorithm, d->is_ngram ? "" : ", so there are no drafts");
    d->is_chain = 0;
    if (!d->is_ngram) d->most = 0;
    return FM_OK;
}

/* Any lease of a partition's kv may be a running request's. */
static int n_lease(const opening *p) { return p->sched.max_running + p->sched.other_leases; }

size_t fm__open_ngram_bytes(const opening *p)
{
    const fm_engine *e = p->e;
    if (!e->draft.is_ngram || !e->layout.is_leader) return 0;
    return (size_t)e->limits.n_lane * (size_t)e->layout.n_group * (size_t)n_lease(p) *
           fm_ngram_bytes(p->sched.max_context);
}

fm_status fm__open_ngrams(opening *p)
{
    fm_drafting *d = &p->e->draft;
    const int    n = fm__n_partition(p->e) * n_lease(p);
    if (!d->is_ngram) return FM_OK;
    d->ngram = calloc((size_t)n, sizeof(fm_ngram *));
    if (!d->ngram) return fm_fail(FM_E_OOM, "n-gram indexes");
    for (; d->n_ngram < n; d->n_ngram++)
        FM_TRY(fm_ngram_create(&d->ngram[d->n_ngram], p->sched.max_context, d->min_n, d->max_n));
    for (int i = 0; i < fm__n_partition(p->e); i++)
        fm__partition(p->e, i)->ngram = d->ngram + i * n_lease(p);
    return FM_OK;
}

fm_status fm__open_chain(opening *p)
{
    fm_engine   *e    = p->e;
    fm_drafting *d    = &e->draft;
    const size_t rows = (size_t)p->sched.max_running * (size_t)e->layout.n_group;
    if (!d->is_chain) return FM_OK;
    d->token = calloc((size_t)p->sched.max_running, sizeof *d->token);
    if (e->layout.is_leader) d->id = calloc((size_t)d->most * rows, sizeof *d->id);
    return d->token && (d->id || !e->layout.is_leader) ? FM_OK : fm_fail(FM_E_OOM, "drafts");
}
