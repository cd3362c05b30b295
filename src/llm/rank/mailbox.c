/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/rank/mailbox.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Frames up to PIECE_BYTES travel in one message; the rest follows as one body, so that
 * a receiver that polls between its steps gets everything by the next poll. */
enum { PIECE_BYTES = 3840, MOST_PENDING = 64 << 20, MOST_MISSES = 16, NAP_NS = 20000 };

typedef struct {
    uint32_t used, is_last; /* bytes of data; nothing will follow */
    uint64_t body;          /* bytes of the body */
    char     data[PIECE_BYTES - 16];
} piece;

typedef struct {
    uint32_t kind, bytes; /* of what follows, padding not counted */
} frame_head;

enum { PIECE, BODY, N_PART }; /* tags, too */

typedef struct {
    fm_comm_job job[N_PART];
    int         is_under_way[N_PART];
    piece       piece;
    char       *body;
    size_t      body_cap;
} parcel;

struct fm_mailbox {
    fm_comm *pair;
    int      other;
    fm_str   pending; /* frames not yet sent, from `cut` on */
    size_t   cut, frame_at;
    parcel   out, in;
    fm_str   arrived; /* from `read` on */
    size_t   read;
    int      is_ending, is_over; /* our last piece is due; the other's has come */
};

static fm_status make_room(parcel *p, size_t bytes)
{
    if (bytes <= p->body_cap) return FM_OK;
    char *more = realloc(p->body, bytes);
    if (!more) return fm_fail(FM_E_OOM, "a message of %zu bytes between replicas", bytes);
    p->body     = more;
    p->body_cap = bytes;
    return FM_OK;
}

static fm_status start(fm_mailbox *m, parcel *p, int part, fm_comm_call call)
{
    FM_TRY(fm_comm_start(m->pair, &p->job[part], call));
    p->is_under_way[part] = 1;
    return FM_OK;
}

static fm_status test(parcel *p, int part, int *done)
{
    *done = 1;
    if (p->is_under_way[part]) FM_TRY(fm_comm_test(&p->job[part], done));
    p->is_under_way[part] = !*done;
    return FM_OK;
}

fm_status fm_mailbox_create(fm_mailbox **out, fm_comm *pair)
{
    FM_BUG_UNLESS(pair->n_rank == 2);
    fm_mailbox *m = calloc(1, sizeof *m);
    if (!m) return fm_fail(FM_E_OOM, "mailbox");
    m->pair  = pair;
    m->other = 1 - pair->rank;
    *out     = m;
    return FM_OK;
}

void fm_mailbox_destroy(fm_mailbox *m)
{
    if (!m) return;
    fm_str_fini(&m->pending);
    fm_str_fini(&m->arrived);
    free(m->out.body);
    free(m->in.body);
    free(m);
}

/* --- out ------------------------------------------------------------------- */

static void pad(fm_str *s)
{
    static const char zeros[8];
    fm_str_add(s, zeros, (8 - s->len % 8) % 8);
}

fm_str *fm_mailbox_begin(fm_mailbox *m, uint32_t kind)
{
    const frame_head head = {.kind = kind};
    if (m->cut == m->pending.len) {
        fm_str_clear(&m->pending);
        m->cut = 0;
    }
    m->frame_at = m->pending.len;
    fm_str_add(&m->pending, (const char *)&head, sizeof head);
    return &m->pending;
}

fm_status fm_mailbox_end(fm_mailbox *m)
{
    const size_t bytes = m->pending.len - m->frame_at - sizeof(frame_head);
    if (bytes > MOST_PENDING)
        return fm_fail(FM_E_NOSUP, "a message of %zu bytes between replicas; one can have %d", bytes,
                       MOST_PENDING);
    frame_head head;
    memcpy(&head, m->pending.text + m->frame_at, sizeof head);
    head.bytes = (uint32_t)bytes;
    memcpy(m->pending.text + m->frame_at, &head, sizeof head);
    pad(&m->pending);
    return m->pending.len - m->cut > MOST_PENDING ? fm_mailbox_flush(m) : FM_OK;
}

/* All that is pending; the last parcel is gone. */
static fm_status send_parcel(fm_mailbox *m)
{
    parcel      *p    = &m->out;
    const size_t left = m->pending.len - m->cut;
    const size_t used = left < sizeof p->piece.data ? left : sizeof p->piece.data;
    p->piece.used     = (uint32_t)used;
    p->piece.body     = left - used;
    p->piece.is_last  = (uint32_t)m->is_ending;
    FM_TRY(make_room(p, left - used));
    if (used) memcpy(p->piece.data, m->pending.text + m->cut, used);
    if (left > used) memcpy(p->body, m->pending.text + m->cut + used, left - used);
    m->cut += left;
    FM_TRY(start(m, p, PIECE, fm_call_send(&p->piece, sizeof p->piece, m->other, PIECE)));
    if (left == used) return FM_OK;
    return start(m, p, BODY, fm_call_send(p->body, left - used, m->other, BODY));
}

static fm_status move_out(fm_mailbox *m)
{
    int piece_done, body_done;
    FM_TRY(test(&m->out, PIECE, &piece_done));
    FM_TRY(test(&m->out, BODY, &body_done));
    return piece_done && body_done && m->cut < m->pending.len ? send_parcel(m) : FM_OK;
}

/* --- in -------------------------------------------------------------------- */

static void take(fm_mailbox *m, const char *data, size_t bytes)
{
    if (m->read == m->arrived.len) {
        fm_str_clear(&m->arrived);
        m->read = 0;
    }
    fm_str_add(&m->arrived, data, bytes);
}

static fm_status listen_on(fm_mailbox *m)
{
    parcel *p = &m->in;
    if (p->is_under_way[PIECE] || p->is_under_way[BODY]) return FM_OK;
    return start(m, p, PIECE, fm_call_recv(&p->piece, sizeof p->piece, m->other, PIECE));
}

/* A piece has come. */
static fm_status take_piece(fm_mailbox *m)
{
    parcel *p = &m->in;
    if (p->piece.used > sizeof p->piece.data || p->piece.body > 2 * (uint64_t)MOST_PENDING)
        return fm_fail(FM_E_FORMAT, "a garbled message from another replica");
    take(m, p->piece.data, p->piece.used);
    m->is_over = p->piece.is_last != 0;
    if (!p->piece.body) return FM_OK;
    FM_TRY(make_room(p, p->piece.body));
    return start(m, p, BODY, fm_call_recv(p->body, p->piece.body, m->other, BODY));
}

/* Whatever is under way; *done: it came. */
static fm_status move_in(fm_mailbox *m, int *done)
{
    parcel   *p    = &m->in;
    const int part = p->is_under_way[BODY] ? BODY : PIECE;
    FM_TRY(test(p, part, done));
    if (!*done) return FM_OK;
    if (part == PIECE) return take_piece(m);
    take(m, p->body, p->piece.body);
    return FM_OK;
}

static fm_status await_in(fm_mailbox *m) /* the other may be deep in a step */
{
    parcel   *p    = &m->in;
    const int part = p->is_under_way[BODY] ? BODY : PIECE;
    FM_TRY(fm_comm_wait_idle(&p->job[part]));
    p->is_under_way[part] = 0;
    if (part == PIECE) return take_piece(m);
    take(m, p->body, p->piece.body);
    return FM_OK;
}

static int has_whole_frame(const fm_mailbox *m, frame_head *head)
{
    const size_t left = m->arrived.len - m->read;
    if (left < sizeof *head) return 0;
    memcpy(head, m->arrived.text + m->read, sizeof *head);
    return left >= sizeof *head + ((size_t)head->bytes + 7) / 8 * 8;
}

int fm_mailbox_next(fm_mailbox *m, fm_frame *f)
{
    frame_head head;
    if (!has_whole_frame(m, &head)) return 0;
    *f = (fm_frame){head.kind, m->arrived.text + m->read + sizeof head, head.bytes};
    m->read += sizeof head + ((size_t)head.bytes + 7) / 8 * 8;
    return 1;
}

static int is_sent(const fm_mailbox *m)
{
    return !m->out.is_under_way[PIECE] && !m->out.is_under_way[BODY] && m->cut == m->pending.len;
}

/* Listens meanwhile: the other may be flushing, too. */
fm_status fm_mailbox_flush(fm_mailbox *m)
{
    for (int done;;) {
        FM_TRY(move_out(m));
        if (is_sent(m)) return FM_OK;
        if (!m->is_over) FM_TRY(listen_on(m));
        if (!m->is_over) FM_TRY(move_in(m, &done));
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

/* A test may find nothing although more is there, behind in the transport's
 * queue. */
fm_status fm_mailbox_move(fm_mailbox *m)
{
    FM_TRY(move_out(m));
    for (int done, n_miss = 0; n_miss < MOST_MISSES && !m->is_over;) {
        FM_TRY(listen_on(m));
        FM_TRY(move_in(m, &done));
        n_miss = done ? 0 : n_miss + 1;
    }
    return FM_OK;
}

fm_status fm_mailbox_wait(fm_mailbox *m)
{
    frame_head head;
    FM_TRY(fm_mailbox_flush(m));
    while (!m->is_over && !has_whole_frame(m, &head)) {
        FM_TRY(listen_on(m));
        FM_TRY(await_in(m));
    }
    return FM_OK;
}

int fm_mailbox_is_over(const fm_mailbox *m)
{
    return m->is_over;
}

fm_status fm_mailbox_hang_up(fm_mailbox *m)
{
    FM_TRY(fm_mailbox_flush(m));
    m->is_ending = 1;
    FM_TRY(send_parcel(m)); /* an empty one */
    FM_TRY(fm_mailbox_flush(m));
    while (!m->is_over) {
        FM_TRY(listen_on(m));
        FM_TRY(await_in(m));
    }
    return FM_OK;
}
