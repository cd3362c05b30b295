/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/rank/mailbox.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 3840, N_OUT = 2, MOST_PENDING = 64 << 20 };

typedef struct {
    uint32_t used, is_last; /* bytes of data; nothing will follow */
    char     data[PIECE_BYTES - 8];
} piece;

typedef struct {
    uint32_t kind, bytes; /* of what follows, padding not counted */
} frame_head;

struct fm_mailbox {
    fm_comm    *pair;
    int         other;
    fm_str      pending; /* frames not yet cut into pieces, from `cut` on */
    size_t      cut, frame_at;
    piece       out[N_OUT], in;
    fm_comm_job sending[N_OUT], receiving;
    int         is_sending[N_OUT], is_receiving;
    fm_str      arrived; /* from `read` on */
    size_t      read;
    int         is_ending, is_over; /* our last piece is due; the other's has come */
};

static fm_status listen_on(fm_mailbox *m)
{
    FM_TRY(fm_comm_start(m->pair, &m->receiving, fm_call_recv(&m->in, sizeof m->in, m->other, 0)));
    m->is_receiving = 1;
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

static fm_status send_piece(fm_mailbox *m, int i)
{
    piece       *p    = &m->out[i];
    const size_t left = m->pending.len - m->cut;
    p->used           = (uint32_t)(left < sizeof p->data ? left : sizeof p->data);
    memcpy(p->data, m->pending.text + m->cut, p->used);
    m->cut += p->used;
    p->is_last = m->is_ending && m->cut == m->pending.len;
    FM_TRY(fm_comm_start(m->pair, &m->sending[i], fm_call_send(p, sizeof *p, m->other, 0)));
    m->is_sending[i] = 1;
    return FM_OK;
}

/* *more: something is still to be sent or on its way. */
static fm_status move_out(fm_mailbox *m, int *more)
{
    *more = 0;
    for (int i = 0; i < N_OUT; i++) {
        int done = 1;
        if (m->is_sending[i]) FM_TRY(fm_comm_test(&m->sending[i], &done));
        m->is_sending[i] = !done;
        while (done && m->cut < m->pending.len) {
            FM_TRY(send_piece(m, i));
            FM_TRY(fm_comm_test(&m->sending[i], &done));
            m->is_sending[i] = !done;
        }
        *more |= m->is_sending[i];
    }
    return FM_OK;
}

fm_status fm_mailbox_flush(fm_mailbox *m)
{
    for (int more = 1; more;) {
        FM_TRY(move_out(m, &more));
        for (int i = 0; i < N_OUT; i++)
            if (m->is_sending[i]) {
                FM_TRY(fm_comm_wait(&m->sending[i]));
                m->is_sending[i] = 0;
            }
        more = m->cut < m->pending.len;
    }
    return FM_OK;
}

/* --- in -------------------------------------------------------------------- */

static fm_status take_piece(fm_mailbox *m)
{
    m->is_receiving = 0;
    if (m->in.used > sizeof m->in.data)
        return fm_fail(FM_E_FORMAT, "a garbled message from another replica");
    if (m->read == m->arrived.len) {
        fm_str_clear(&m->arrived);
        m->read = 0;
    }
    fm_str_add(&m->arrived, m->in.data, m->in.used);
    m->is_over = m->in.is_last != 0;
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

fm_status fm_mailbox_move(fm_mailbox *m)
{
    int more;
    FM_TRY(move_out(m, &more));
    for (int done = 1; done && !m->is_over;) {
        if (!m->is_receiving) FM_TRY(listen_on(m));
        FM_TRY(fm_comm_test(&m->receiving, &done));
        if (done) FM_TRY(take_piece(m));
    }
    return FM_OK;
}

fm_status fm_mailbox_wait(fm_mailbox *m)
{
    frame_head head;
    FM_TRY(fm_mailbox_flush(m));
    while (!m->is_over && !has_whole_frame(m, &head)) {
        if (!m->is_receiving) FM_TRY(listen_on(m));
        FM_TRY(fm_comm_wait_idle(&m->receiving));
        FM_TRY(take_piece(m));
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
    FM_TRY(send_piece(m, 0)); /* an empty one */
    FM_TRY(fm_mailbox_flush(m));
    while (!m->is_over) {
        if (!m->is_receiving) FM_TRY(listen_on(m));
        FM_TRY(fm_comm_wait_idle(&m->receiving)); /* it may be deep in a step */
        FM_TRY(take_piece(m));
    }
    return FM_OK;
}
