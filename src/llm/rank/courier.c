/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/rank/courier.h"

#include <stdlib.h>

#include "base/slab.h"

enum { FIRST, REST, N_PART };

/* A part of a plan under way. */
typedef struct {
    fm_comm_job job;
    int         lane;
} parcel;

typedef struct {
    int32_t     *message; /* [max words] */
    fm_plan_room room;
} lane_room;

struct fm_courier {
    fm_courier_options opt;
    lane_room         *lane;   /* [n_lane] on the leader, [1] elsewhere */
    parcel            *parcel; /* [n_parcel] a ring, oldest first */
    int                n_parcel, first, n_under_way;
};

static int n_room(const fm_courier_options *o)
{
    return o->is_leader ? o->limits.n_lane : 1;
}

static void carve_lane(lane_room *r, const fm_plan_limits *l, fm_slab *s)
{
    const size_t n_group = (size_t)l->n_group;
    r->message         = fm_slab_take(s, fm_plan_max_words(l) * sizeof *r->message);
    r->room.pos        = fm_slab_take(s, (size_t)l->max_rows * sizeof *r->room.pos);
    r->room.span       = fm_slab_take(s, (size_t)l->max_spans * sizeof *r->room.span);
    r->room.group_rows = fm_slab_take(s, n_group * sizeof *r->room.group_rows);
    r->room.group_outs = fm_slab_take(s, n_group * sizeof *r->room.group_outs);
    r->room.move       = fm_slab_take(s, (size_t)l->max_moves * sizeof *r->room.move);
}

/* The struct itself lies at the front of the block. */
static void lay_out(fm_courier *c, const fm_courier_options *o, fm_slab *s)
{
    const int n_stage = o->heads ? o->heads->n_rank : 1;
    fm_slab_take(s, sizeof *c);
    *c        = (fm_courier){.opt = *o, .n_parcel = n_room(o) * n_stage * N_PART};
    c->lane   = fm_slab_take(s, (size_t)n_room(o) * sizeof *c->lane);
    c->parcel = fm_slab_take(s, (size_t)c->n_parcel * sizeof *c->parcel);
    for (int i = 0; i < n_room(o); i++) {
        lane_room counted;
        carve_lane(s->base ? &c->lane[i] : &counted, &o->limits, s);
    }
}

size_t fm_courier_bytes(const fm_courier_options *o)
{
    fm_courier measured;
    fm_slab    s = {0};
    lay_out(&measured, o, &s);
    return s.used;
}

fm_status fm_courier_create(fm_courier **out, const fm_courier_options *o)
{
    const size_t bytes = fm_courier_bytes(o);
    char *const  base  = aligned_alloc(FM_SLAB_ALIGN, bytes);
    if (!base) return fm_fail(FM_E_OOM, "step plans need %zu bytes", bytes);
    fm_slab s = {.base = base, .size = bytes};
    lay_out((fm_courier *)base, o, &s);
    *out = (fm_courier *)base;
    return FM_OK;
}

void fm_courier_destroy(fm_courier *c)
{
    free(c);
}

/* --- the leader ------------------------------------------------------------ */

static fm_status wait_oldest(fm_courier *c)
{
    FM_BUG_UNLESS(c->n_under_way > 0);
    parcel *p = &c->parcel[c->first];
    c->first  = (c->first + 1) % c->n_parcel;
    c->n_under_way--;
    return fm_comm_wait(&p->job);
}

static int is_under_way(const fm_courier *c, int lane)
{
    for (int i = 0; i < c->n_under_way; i++)
        if (c->parcel[(c->first + i) % c->n_parcel].lane == lane) return 1;
    return 0;
}

static fm_status empty_lane(fm_courier *c, int lane)
{
    while (is_under_way(c, lane)) FM_TRY(wait_oldest(c));
    return FM_OK;
}

/* A group takes a few jobs at a time; with more lanes than that the oldest is
 * waited for. */
static fm_status dispatch(fm_courier *c, fm_comm *group, fm_comm_call call, int lane)
{
    for (;;) {
        while (c->n_under_way == c->n_parcel) FM_TRY(wait_oldest(c));
        parcel *p          = &c->parcel[(c->first + c->n_under_way) % c->n_parcel];
        p->lane            = lane;
        const fm_status rc = fm_comm_start(group, &p->job, call);
        if (rc == FM_OK) c->n_under_way++;
        if (rc != FM_E_FULL) return rc;
        FM_TRY(wait_oldest(c));
    }
}

/* Two parts: the first has a fixed length and says how long the second is. */
static fm_status dispatch_all(fm_courier *c, int32_t *message, size_t n_word, int lane)
{
    const size_t first = FM_PLAN_FIRST_WORDS * sizeof *message;
    const size_t rest  = n_word * sizeof *message - first;
    for (int part = FIRST; part < (rest ? N_PART : REST); part++) {
        char *const  at    = (char *)message + (part == FIRST ? 0 : first);
        const size_t bytes = part == FIRST ? first : rest;
        for (int p = 1; p < c->opt.heads->n_rank; p++)
            FM_TRY(dispatch(c, c->opt.heads, fm_call_send(at, bytes, p, part), lane));
        FM_TRY(dispatch(c, c->opt.plan, fm_call_broadcast(at, bytes, 0), lane));
    }
    return FM_OK;
}

fm_status fm_courier_send(fm_courier *c, const fm_step_plan *p, fm_read_plan *own)
{
    const int  lane = p->head.lane;
    lane_room *r    = &c->lane[lane];
    FM_TRY(empty_lane(c, lane));
    const size_t n_word = fm_plan_write(r->message, p, &c->opt.limits);
    FM_TRY(dispatch_all(c, r->message, n_word, lane));
    return fm_plan_read(own, &r->room, r->message, &c->opt.limits, c->opt.group);
}

fm_status fm_courier_send_moves(fm_courier *c, const fm_moves_plan *p)
{
    const int  lane = p->head.lane;
    lane_room *r    = &c->lane[lane];
    FM_TRY(empty_lane(c, lane));
    return dispatch_all(c, r->message, fm_moves_write(r->message, p, &c->opt.limits), lane);
}

fm_status fm_courier_settle(fm_courier *c)
{
    while (c->n_under_way) FM_TRY(wait_oldest(c));
    return FM_OK;
}

fm_status fm_courier_quit(fm_courier *c)
{
    const fm_step_plan quit = {.head = {.kind = FM_PLAN_QUIT}};
    fm_read_plan       own;
    FM_TRY(fm_courier_send(c, &quit, &own));
    return fm_courier_settle(c);
}

/* --- the others ------------------------------------------------------------ */

/* Place 0 of a later stage receives the plan from the leader and broadcasts it to its
 * stage. */
static fm_status take_part(fm_courier *c, void *at, size_t bytes, int part)
{
    fm_comm_job job;
    if (c->opt.heads && c->opt.heads->rank > 0) {
        FM_TRY(fm_comm_start(c->opt.heads, &job, fm_call_recv(at, bytes, 0, part)));
        FM_TRY(part == FIRST ? fm_comm_wait_idle(&job) : fm_comm_wait(&job));
    }
    FM_TRY(fm_comm_start(c->opt.plan, &job, fm_call_broadcast(at, bytes, 0)));
    return part == FIRST ? fm_comm_wait_idle(&job) : fm_comm_wait(&job);
}

fm_status fm_courier_receive(fm_courier *c, fm_read_plan *out)
{
    lane_room   *r      = &c->lane[0];
    const size_t first  = FM_PLAN_FIRST_WORDS * sizeof *r->message;
    size_t       n_word = 0;
    FM_TRY(take_part(c, r->message, first, FIRST));
    FM_TRY(fm_plan_length(r->message, &c->opt.limits, &n_word));
    const size_t rest = n_word * sizeof *r->message - first;
    if (rest) FM_TRY(take_part(c, (char *)r->message + first, rest, REST));
    return fm_plan_read(out, &r->room, r->message, &c->opt.limits, c->opt.group);
}
