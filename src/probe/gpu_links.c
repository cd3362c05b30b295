/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/gpu_links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/gpu_wire.h"

enum { MOST_STEPS = 200 };

/* --- who takes part ---------------------------------------------------------------- */

/* A lower rank that has the same GPU; -1: there is none. */
static int shares_with(const fm_gpu_seat *seat, int rank)
{
    const fm_gpu_seat *s = &seat[rank];
    for (int i = 0; i < rank && *s->pci && !s->has_host_id; i++)
        if (seat[i].has_gpu && seat[i].machine == s->machine && !strcmp(seat[i].pci, s->pci))
            return i;
    return -1;
}

int fm_gpu_links_choose(const fm_gpu_seat *seat, int n, char *is_member, char *why, size_t size)
{
    int n_member = 0;
    *why         = 0;
    for (int i = 0; i < n; i++) {
        const int with = seat[i].has_gpu ? shares_with(seat, i) : -1;
        is_member[i]   = seat[i].has_gpu && with < 0;
        n_member += is_member[i];
        if (with >= 0 && !*why) snprintf(why, size, "ranks %d and %d share a GPU", with, i);
    }
    if (n_member > 1) *why = 0;
    for (int i = 0; i < n && n_member > 1; i++)
        if (is_member[i] && *seat[i].no_nccl) {
            snprintf(why, size, "rank %d cannot use NCCL: %s", i, seat[i].no_nccl);
            n_member = 0;
        }
    if (n_member < 2) memset(is_member, 0, (size_t)n);
    return n_member < 2 ? 0 : n_member;
}

static fm_gpu_seat seat_of(const fm_turns *turns, const char *pci)
{
    const int   me = fm_world_comm(turns->world)->rank;
    fm_gpu_seat s  = {.has_gpu     = pci != NULL,
                      .has_host_id = getenv("NCCL_HOSTID") != NULL,
                      .machine     = fm_world_machine(turns->world, me)};
    snprintf(s.pci, sizeof s.pci, "%.31s", pci ? pci : "");
    if (pci && fm_gpu_wire_find() != FM_OK)
        snprintf(s.no_nccl, sizeof s.no_nccl, "%.95s", fm_why());
    return s;
}

/* --- measuring ------------------------------------------------------------------------ */

/* What all ranks know before they measure. */
typedef struct {
    fm_gpu_seat *seat;       /* [n_rank] */
    char        *is_member;  /* [n_rank] */
    int         *group_rank; /* [n_rank] among the members */
    size_t      *bytes;      /* [n_rank] of what each sends */
    fm_comm     *group;      /* the members; NULL on other ranks */
} meeting;

static fm_status make_room(meeting *m, int n_rank)
{
    const size_t n = (size_t)n_rank;
    m->seat        = calloc(n, sizeof *m->seat);
    m->is_member   = calloc(n, 1);
    m->group_rank  = calloc(n, sizeof *m->group_rank);
    m->bytes       = calloc(n, sizeof *m->bytes);
    return m->seat && m->is_member && m->group_rank && m->bytes
               ? FM_OK
               : fm_fail(FM_E_OOM, "links of %d ranks", n_rank);
}

static void leave(meeting *m)
{
    fm_comm_close(m->group);
    free(m->seat);
    free(m->is_member);
    free(m->group_rank);
    free(m->bytes);
}

static fm_status gather(meeting *m, fm_comm *c, void *all, const void *mine, size_t bytes)
{
    for (int i = 0; i < c->n_rank; i++) m->bytes[i] = bytes;
    return fm_all_gather(c, all, mine, m->bytes);
}

static fm_status make_group(meeting *m, fm_comm *c)
{
    const fm_comm_part part = {.color = m->is_member[c->rank] ? 0 : -1, .name = "gpus"};
    for (int i = 0, n = 0; i < c->n_rank; i++) m->group_rank[i] = m->is_member[i] ? n++ : -1;
    return fm_comm_split(c, &part, &m->group);
}

/* After a failure, on all ranks: the words of the lowest rank that has some. */
static fm_status say_why(fm_gpu_links *out, meeting *m, fm_comm *c, const fm_link_wire *w)
{
    char     *all = calloc((size_t)c->n_rank, sizeof w->why);
    fm_status rc  = all ? gather(m, c, all, w->why, sizeof w->why) : fm_fail(FM_E_OOM, "words");
    for (int i = c->n_rank - 1; rc == FM_OK && i >= 0; i--)
        if (all[(size_t)i * sizeof w->why])
            snprintf(out->why, sizeof out->why, "%s", all + (size_t)i * sizeof w->why);
    out->has_failed = 1;
    free(all);
    return rc;
}

/* A rank that is no member, or that could not join, takes part in the barriers all the same. */
static fm_status measure(fm_gpu_links *out, meeting *m, const fm_turns *turns)
{
    fm_comm      *c      = fm_world_comm(turns->world);
    fm_link_wire *opened = NULL;
    fm_link_wire  absent = {0};
    if (m->group && fm_gpu_wire_open(&opened, turns, m->group, m->group_rank) != FM_OK)
        snprintf(absent.why, sizeof absent.why, "%.159s", fm_why());
    fm_link_wire *w = opened ? opened : &absent;
    w->is_member    = m->is_member;
    w->most_steps   = MOST_STEPS;
    w->can_fail     = 1;
    fm_status rc    = fm_links_measure_by(&out->links, turns, w);
    if (rc == FM_E_DEVICE) rc = say_why(out, m, c, w);
    fm_gpu_wire_close(opened);
    return rc;
}

static fm_status meet_and_measure(fm_gpu_links *out, meeting *m, const fm_turns *turns,
                                  const char *pci)
{
    fm_comm          *c    = fm_world_comm(turns->world);
    const fm_gpu_seat mine = seat_of(turns, pci);
    FM_TRY(make_room(m, c->n_rank));
    FM_TRY(gather(m, c, m->seat, &mine, sizeof mine));
    if (!fm_gpu_links_choose(m->seat, c->n_rank, m->is_member, out->why, sizeof out->why))
        return FM_OK;
    FM_TRY(make_group(m, c));
    return measure(out, m, turns);
}

/* A rank that cannot join waits for those that NCCL keeps until its own time limit. */
fm_status fm_gpu_links_measure(fm_gpu_links *out, const fm_turns *turns, const char *pci)
{
    fm_gpu_links l       = {0};
    meeting      m       = {0};
    fm_turns     patient = *turns;
    patient.patience *= 2;
    if (fm_world_comm(turns->world)->n_rank == 1) return FM_OK;
    const fm_status rc = meet_and_measure(&l, &m, &patient, pci);
    leave(&m);
    if (rc == FM_OK)
        *out = l;
    else
        fm_gpu_links_fini(&l);
    return rc;
}

void fm_gpu_links_fini(fm_gpu_links *l)
{
    fm_links_fini(&l->links);
    *l = (fm_gpu_links){0};
}
