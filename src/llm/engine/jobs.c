/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/engine/jobs.h"

#include <stdlib.h>

enum { MIN_BUCKETS = 1024 };

static void free_job(fm_job *j)
{
    fm_stop_fini(&j->stop);
    fm_matcher_destroy(j->matcher);
    free(j->mask);
    free(j->bias);
    free(j->request.token);
    free(j);
}

static void free_prompt(fm_submitted *p)
{
    for (fm_job *j = p->job, *next; j; j = next) {
        next = j->next;
        free_job(j);
    }
    free(p);
}

void fm__jobs_fini(fm_jobs *t)
{
    for (fm_submitted *p = fm__jobs_first(t), *next; p; p = next) {
        next = fm__jobs_next(t, p);
        free_prompt(p);
    }
    free(t->bucket);
    *t = (fm_jobs){0};
}

/* Ids are mostly consecutive: their low bits spread them evenly. */
static fm_submitted **bucket_of(const fm_jobs *t, uint64_t id)
{
    return &t->bucket[(id ^ id >> 20) & (t->n_bucket - 1)];
}

fm_submitted *fm__jobs_find(const fm_jobs *t, uint64_t id)
{
    fm_submitted *p = t->n_bucket ? *bucket_of(t, id) : NULL;
    while (p && p->id != id) p = p->next;
    return p;
}

static void link_prompt(fm_jobs *t, fm_submitted *p)
{
    fm_submitted **at = bucket_of(t, p->id);
    p->next           = *at;
    *at               = p;
}

/* Doubles the buckets when there are as many prompts. */
static fm_status grow(fm_jobs *t)
{
    if (t->n < t->n_bucket) return FM_OK;
    fm_jobs wide = {.n_bucket = t->n_bucket ? 2 * t->n_bucket : MIN_BUCKETS, .n = t->n};
    if (!(wide.bucket = calloc(wide.n_bucket, sizeof *wide.bucket)))
        return fm_fail(FM_E_OOM, "table of %zu prompts", t->n);
    for (size_t b = 0; b < t->n_bucket; b++)
        for (fm_submitted *p = t->bucket[b], *next; p; p = next) {
            next = p->next;
            link_prompt(&wide, p);
        }
    free(t->bucket);
    *t = wide;
    return FM_OK;
}

fm_status fm__jobs_add(fm_jobs *t, const fm_submitted *what, fm_submitted **out)
{
    if (fm__jobs_find(t, what->id))
        return fm_fail(FM_E_ARG, "prompt id %llu is in use", (unsigned long long)what->id);
    FM_TRY(grow(t));
    fm_submitted *p = malloc(sizeof *p);
    if (!p) return fm_fail(FM_E_OOM, "prompt");
    *p = *what;
    link_prompt(t, p);
    t->n++;
    *out = p;
    return FM_OK;
}

void fm__jobs_remove(fm_jobs *t, fm_submitted *p)
{
    fm_submitted **at = bucket_of(t, p->id);
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    t->n--;
    free_prompt(p);
}

void fm__job_link(fm_submitted *p, fm_job *j)
{
    j->of   = p;
    j->next = p->job;
    if (p->job) p->job->prev = j;
    p->job = j;
}

void fm__job_end(fm_jobs *t, fm_job *j)
{
    fm_submitted *p                     = j->of;
    *(j->prev ? &j->prev->next : &p->job) = j->next;
    if (j->next) j->next->prev = j->prev;
    free_job(j);
    if (--p->n_left == 0) fm__jobs_remove(t, p);
}

static fm_submitted *first_from(const fm_jobs *t, size_t bucket)
{
    while (bucket < t->n_bucket && !t->bucket[bucket]) bucket++;
    return bucket < t->n_bucket ? t->bucket[bucket] : NULL;
}

fm_submitted *fm__jobs_first(const fm_jobs *t)
{
    return first_from(t, 0);
}

fm_submitted *fm__jobs_next(const fm_jobs *t, const fm_submitted *p)
{
    return p->next ? p->next : first_from(t, (size_t)(bucket_of(t, p->id) - t->bucket) + 1);
}
