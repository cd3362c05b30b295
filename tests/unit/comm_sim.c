/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "comm_sim.h"

enum { MESSAGES = 1 << 15 };

typedef struct {
    fm_wire wire; /* first */
    sim    *of;
    int     rank;
} sim_wire;

typedef struct {
    int         is_send, is_seen, is_done; /* seen: its owner knows that it is done */
    int         from, to, tag;
    size_t      bytes;
    const void *src;
    void       *dst, *copy; /* copy: an eager send's */
} message;

struct sim {
    int      n_rank, n_message, n_past;
    uint64_t seed, drawn;
    size_t   scratch_bytes;
    sim_wire wire[SIM_RANKS];
    fm_comm *group[SIM_RANKS];
    message  message[MESSAGES];
};

uint32_t sim_draw(sim *s, uint32_t below)
{
    return fm_rng_u32(s->seed, s->drawn++) % below;
}

/* The list begins anew whenever nothing is under way. */
static message *add(sim *s, fm_wire_request *r)
{
    while (s->n_past < s->n_message && s->message[s->n_past].is_done &&
           s->message[s->n_past].is_seen)
        s->n_past++;
    if (s->n_past == s->n_message) s->n_past = s->n_message = 0;
    assert_true(s->n_message < MESSAGES);
    r->number  = s->n_message;
    message *m = &s->message[s->n_message++];
    *m         = (message){0};
    return m;
}

static fm_status post_send(fm_wire *w, const void *p, size_t bytes, int to, int tag,
                           fm_wire_request *r)
{
    sim     *s = ((sim_wire *)w)->of;
    message *m = add(s, r);
    m->is_send = 1;
    m->from = ((sim_wire *)w)->rank, m->to = to, m->tag = tag, m->bytes = bytes, m->src = p;
    if (bytes && sim_draw(s, 2)) m->src = m->copy = memcpy(malloc(bytes), p, bytes);
    return FM_OK;
}

static fm_status post_recv(fm_wire *w, void *p, size_t bytes, int from, int tag, fm_wire_request *r)
{
    message *m = add(((sim_wire *)w)->of, r);
    m->from = from, m->to = ((sim_wire *)w)->rank, m->tag = tag, m->bytes = bytes, m->dst = p;
    return FM_OK;
}

static message *first(sim *s, int is_send, const message *like)
{
    for (int i = s->n_past; i < s->n_message; i++) {
        message *m = &s->message[i];
        if (m->is_send == is_send && !m->is_done && m->from == like->from && m->to == like->to &&
            m->tag == like->tag)
            return m;
    }
    return NULL;
}

/* The oldest send meets the oldest receive of its kind. */
static void deliver(sim *s, const message *like)
{
    message *from = first(s, 1, like), *to = first(s, 0, like);
    if (!from || !to) return;
    assert_true(from->bytes <= to->bytes);
    if (from->bytes) memcpy(to->dst, from->src, from->bytes);
    to->bytes     = from->bytes;
    from->is_done = to->is_done = 1;
    free(from->copy);
    from->copy = NULL;
}

static fm_status test(fm_wire *w, fm_wire_request *r, int *done, size_t *bytes)
{
    sim     *s = ((sim_wire *)w)->of;
    message *m = &s->message[r->number];
    if (!m->is_done && sim_draw(s, 2)) deliver(s, m);
    *done  = m->is_done || (m->is_send && m->copy && sim_draw(s, 2));
    *bytes = m->bytes;
    m->is_seen |= *done;
    return FM_OK;
}

static const fm_wire_ops ops = {post_send, post_recv, test};

fm_comm *sim_add_group(sim *s, int rank, const int *member, int n, int place, int context)
{
    const fm__group_plan plan = {"sim", member, place, n, context, s->scratch_bytes, NULL};
    fm_comm             *c    = NULL;
    assert_int_equal(fm__group_create(&c, &s->wire[rank].wire, &plan), FM_OK);
    return c;
}

sim *sim_create(int n_rank, uint64_t seed, size_t scratch_bytes)
{
    sim *s = calloc(1, sizeof *s);
    int  member[SIM_RANKS];
    s->n_rank = n_rank, s->seed = seed, s->scratch_bytes = scratch_bytes;
    for (int i = 0; i < n_rank; i++) member[i] = i;
    for (int i = 0; i < n_rank; i++) {
        s->wire[i]  = (sim_wire){{&ops, 32767, 1}, s, i};
        s->group[i] = sim_add_group(s, i, member, n_rank, i, 0);
    }
    return s;
}

void sim_destroy(sim *s)
{
    for (int i = 0; i < s->n_rank; i++) fm_comm_close(s->group[i]);
    free(s);
}

fm_comm *sim_group(sim *s, int rank)
{
    return s->group[rank];
}

int sim_undelivered(const sim *s)
{
    int n = 0;
    for (int i = 0; i < s->n_message; i++) n += !s->message[i].is_done;
    return n;
}
