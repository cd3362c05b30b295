/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/engine/jobs.h"

#include <stdlib.h>

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
    fm_id_table_fini(t);
}

fm_submitted *fm__jobs_find(const fm_jobs *t, uint64_t id)
{
    return (fm_submitted *)fm_id_table_find(t, id);
}

fm_status fm__jobs_add(fm_jobs *t, const fm_submitted *what, fm_submitted **out)
{
    if (fm__jobs_find(t, what->id))
        return fm_fail(FM_E_ARG, "prompt id %llu is in use", (unsigned long long)what->id);
    fm_submitted *p = malloc(sizeof *p);
    if (!p) return fm_fail(FM_E_OOM, "prompt");
    *p                 = *what;
    p->link.key        = p->id;
    const fm_status rc = fm_id_table_add(t, &p->link);
    if (rc == FM_OK) *out = p;
    else free(p);
    return rc;
}

void fm__jobs_remove(fm_jobs *t, fm_submitted *p)
{
    fm_id_table_remove(t, &p->link);
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

fm_submitted *fm__jobs_first(const fm_jobs *t)
{
    return (fm_submitted *)fm_id_table_first(t);
}

fm_submitted *fm__jobs_next(const fm_jobs *t, const fm_submitted *p)
{
    return (fm_submitted *)fm_id_table_next(t, &p->link);
}
