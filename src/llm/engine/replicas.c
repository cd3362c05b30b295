/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/engine/replicas.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "llm/rank/mailbox.h"
#include "llm/rank/replica_wire.h"

enum { PROMPT, CANCEL, FLUSH, TRACE, EVENT, INFO }; /* kinds of frames */
enum { NAP_NS = 200000 };

typedef struct {
    fm_mailbox    *box;
    int64_t        load;  /* tokens of its unfinished answers; 0: it has none */
    double         heard; /* when its last message came, or it got work after having none */
    fm_engine_info info;  /* its last reported counters */
} remote;

struct fm_replicas {
    fm_engine *e;
    remote    *remote; /* [n_replica] the first is this engine and has no box */
    int        n_replica;
    double     patience; /* seconds a replica with unfinished answers may send nothing */
    double     stepped;  /* when the last step ended */
    int64_t    n_event;  /* that have come */
    int        n_sent;   /* prompts that others compute */
};

fm_status fm__replicas_create(fm_replicas **out, fm_engine *e, double patience)
{
    fm_replicas *r = calloc(1, sizeof *r);
    remote      *m = calloc((size_t)e->layout.n_replica, sizeof *m);
    if (!r || !m) {
        free(r);
        free(m);
        return fm_fail(FM_E_OOM, "replicas");
    }
    *r   = (fm_replicas){
          .e = e, .remote = m, .n_replica = e->layout.n_replica, .patience = patience};
    *out = r; /* the engine closes what is there */
    for (int d = 1; d < r->n_replica; d++) {
        FM_TRY(fm_mailbox_create(&m[d].box, e->groups.replica[d]));
        m[d].info = fm__engine_info_own(e); /* they are alike, and idle */
    }
    return FM_OK;
}

fm_status fm__replicas_hang_up(fm_replicas *r)
{
    for (int d = 1; r && d < r->n_replica; d++) FM_TRY(fm_mailbox_hang_up(r->remote[d].box));
    return FM_OK;
}

void fm__replicas_destroy(fm_replicas *r)
{
    if (!r) return;
    for (int d = 1; d < r->n_replica; d++) fm_mailbox_destroy(r->remote[d].box);
    free(r->remote);
    free(r);
}

/* --- prompts go out -------------------------------------------------------- */

static int64_t own_load(const fm_engine *e)
{
    int64_t sum = 0;
    for (int i = 0; i < fm__n_partition(e); i++) sum += fm__partition(e, i)->load;
    return sum;
}

static int least_loaded(const fm_replicas *r)
{
    int     best  = 0;
    int64_t least = own_load(r->e);
    for (int d = 1; d < r->n_replica; d++)
        if (r->remote[d].load < least) {
            least = r->remote[d].load;
            best  = d;
        }
    return best;
}

static fm_status remember(fm_replicas *r, const fm_prompt *p, int to)
{
    const fm_submitted new = {.id      = p->id,
                              .replica = to,
                              .n_left  = p->n > 1 ? p->n : 1,
                              .load    = (int64_t)p->n_token + p->sampling.max_new_tokens};
    fm_submitted *s = NULL;
    FM_TRY(fm__jobs_add(&r->e->jobs, &new, &s));
    if (!r->remote[to].load) r->remote[to].heard = fm_now();
    r->remote[to].load += s->load * s->n_left;
    r->n_sent++;
    return FM_OK;
}

fm_status fm__replicas_submit(fm_engine *e, const fm_prompt *p, const int32_t *token, int32_t n,
                              uint64_t id, uint64_t seed, int *is_sent)
{
    fm_replicas *r  = e->replicas;
    const int    to = p->grammar ? 0 : least_loaded(r); /* a grammar cannot travel */
    *is_sent        = to > 0;
    if (!*is_sent) return FM_OK;
    fm_prompt q         = *p;
    q.text              = NULL;
    q.token             = token;
    q.n_token           = n;
    q.id                = id;
    q.sampling.seed     = seed;
    q.sampling.has_seed = 1;
    FM_TRY(remember(r, &q, to));
    fm_prompt_write(fm_mailbox_begin(r->remote[to].box, PROMPT), &q);
    return fm_mailbox_end(r->remote[to].box); /* is sent with the others at the next step */
}

static void tell(fm_mailbox *box, uint32_t kind, uint64_t id)
{
    fm_str_add(fm_mailbox_begin(box, kind), (const char *)&id, sizeof id);
    fm_mailbox_end(box); /* a failure shows at the next step */
}

void fm__replicas_cancel(fm_replicas *r, const fm_submitted *p)
{
    tell(r->remote[p->replica].box, CANCEL, p->id);
}

void fm__replicas_flush(fm_replicas *r)
{
    for (int d = 1; d < r->n_replica; d++) tell(r->remote[d].box, FLUSH, 0);
}

fm_status fm__replicas_trace(fm_replicas *r)
{
    for (int d = 1; d < r->n_replica; d++) {
        tell(r->remote[d].box, TRACE, 0);
        FM_TRY(fm_mailbox_flush(r->remote[d].box));
    }
    return FM_OK;
}

int fm__replicas_busy(const fm_replicas *r)
{
    return r->n_sent > 0;
}

/* --- events come back ------------------------------------------------------ */

static void end_answer(fm_replicas *r, uint64_t id)
{
    fm_submitted *p = fm__jobs_find(&r->e->jobs, id);
    if (!p) return;
    r->remote[p->replica].load -= p->load;
    if (--p->n_left) return;
    fm__jobs_remove(&r->e->jobs, p);
    r->n_sent--;
}

static fm_status take_frame(fm_replicas *r, remote *m, const fm_frame *f)
{
    fm_event ev;
    m->heard = fm_now();
    if (f->kind == INFO && f->bytes == sizeof m->info) {
        memcpy(&m->info, f->data, sizeof m->info);
        return FM_OK;
    }
    if (f->kind != EVENT) return fm_fail(FM_E_FORMAT, "a frame of kind %u to rank 0", f->kind);
    FM_TRY(fm_event_read(&ev, f->data, f->bytes));
    ev.when = m->heard; /* clocks differ between hosts */
    fm_events_copy(&r->e->events, &ev);
    r->n_event++;
    if (ev.finish != FM_FINISH_NONE) end_answer(r, ev.id);
    return FM_OK;
}

static fm_status move_all(fm_replicas *r)
{
    fm_frame f;
    for (int d = 1; d < r->n_replica; d++) {
        remote *m = &r->remote[d];
        FM_TRY(fm_mailbox_move(m->box));
        while (fm_mailbox_next(m->box, &f)) FM_TRY(take_frame(r, m, &f));
    }
    return FM_OK;
}

/* Every replica reports its counters after each step: one that has unfinished answers and reports
 * nothing hangs, although its process lives. */
static fm_status check_alive(const fm_replicas *r)
{
    for (int d = 1; d < r->n_replica; d++) {
        const remote *m      = &r->remote[d];
        const double  silent = fm_now() - m->heard;
        if (m->load && silent > r->patience)
            return fm_fail(FM_E_COMM, "replica %d has not answered for %.1f s", d, silent);
    }
    return FM_OK;
}

/* Messages are received in steps only: the silence does not count if the caller has not stepped for
 * a while. */
static void excuse_pause(fm_replicas *r)
{
    const double now = fm_now();
    for (int d = 1; d < r->n_replica && now - r->stepped > r->patience / 2; d++)
        r->remote[d].heard = now;
}

static fm_status step(fm_engine *e)
{
    fm_replicas  *r        = e->replicas;
    const int64_t n_before = r->n_event;
    FM_TRY(move_all(r));
    FM_TRY(check_alive(r));
    if (fm__engine_busy_own(e)) {
        FM_TRY(fm__engine_step_own(e));
        return move_all(r);
    }
    if (r->n_event == n_before && r->n_sent)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    return FM_OK;
}

fm_status fm__replicas_step(fm_engine *e)
{
    excuse_pause(e->replicas);
    const fm_status rc   = step(e);
    e->replicas->stepped = fm_now();
    if (rc != FM_OK) fm_world_abort(e->world, "%s", fm_why());
    return FM_OK;
}

static void add_info(fm_engine_info *sum, const fm_engine_info *i)
{
    fm_sched_add_stats(&sum->sched, &i->sched);
    fm__add_tiers_info(&sum->tiers, &i->tiers);
    fm_kv_add_stats(&sum->kv, &i->kv);
    sum->n_free_page += i->n_free_page;
    sum->n_idle_page += i->n_idle_page;
    sum->plan.n_page += i->plan.n_page;
    sum->plan.max_tokens += i->plan.max_tokens;
    sum->last_gen_throughput += i->last_gen_throughput;
    sum->steps_per_round = 0; /* each engine steps in its own time */
}

void fm__replicas_add_info(const fm_replicas *r, fm_engine_info *info)
{
    for (int d = 1; d < r->n_replica; d++) add_info(info, &r->remote[d].info);
}

/* --- the leader of another replica ----------------------------------------- */

static fm_status obey_prompt(fm_engine *e, const fm_frame *f)
{
    fm_prompt p;
    FM_TRY(fm_prompt_read(&p, f->data, f->bytes));
    const fm_status rc = fm_engine_submit(e, &p, NULL);
    free((void *)p.stop);
    return rc;
}

static fm_status obey(fm_engine *e, const fm_frame *f)
{
    uint64_t id = 0;
    if (f->kind == PROMPT) return obey_prompt(e, f);
    if (f->bytes != sizeof id || f->kind > TRACE)
        return fm_fail(FM_E_FORMAT, "a frame of kind %u from rank 0", f->kind);
    memcpy(&id, f->data, sizeof id);
    if (f->kind == TRACE) return fm__engine_lead_trace(e);
    if (f->kind == CANCEL) fm_engine_cancel(e, id);
    else fm__engine_flush_own(e);
    return FM_OK;
}

static fm_status report(fm_engine *e, fm_mailbox *box)
{
    fm_event             ev;
    const fm_engine_info info = fm__engine_info_own(e);
    fm_str_add(fm_mailbox_begin(box, INFO), (const char *)&info, sizeof info);
    FM_TRY(fm_mailbox_end(box));
    while (fm_engine_poll(e, &ev)) {
        fm_event_write(fm_mailbox_begin(box, EVENT), &ev);
        FM_TRY(fm_mailbox_end(box));
    }
    return fm_mailbox_move(box);
}

/* When idle, writes pages to the file tier before it blocks for the next message. */
static fm_status rest(fm_engine *e, fm_mailbox *box)
{
    static const struct timespec moment = {.tv_nsec = 2000000};
    int                          more   = 0;
    FM_TRY(fm_engine_save(e, &more));
    if (!more) return fm_mailbox_wait(box);
    nanosleep(&moment, NULL);
    return FM_OK;
}

static fm_status serve(fm_engine *e, fm_mailbox *box)
{
    fm_frame f;
    while (!fm_mailbox_is_over(box)) {
        if (!fm_engine_busy(e)) FM_TRY(rest(e, box));
        FM_TRY(fm_mailbox_move(box)); /* all messages that have arrived are read before the first
                                       * step */
        while (fm_mailbox_next(box, &f)) FM_TRY(obey(e, &f));
        if (fm_engine_busy(e)) FM_TRY(fm_engine_step(e));
        FM_TRY(report(e, box));
    }
    return fm_mailbox_hang_up(box);
}

fm_status fm__replicas_serve(fm_engine *e)
{
    fm_mailbox *box = NULL;
    FM_TRY(fm_mailbox_create(&box, e->groups.replica[0]));
    const fm_status rc = serve(e, box);
    fm_mailbox_destroy(box);
    return rc;
}
