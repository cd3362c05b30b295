/* SPDX-License-Identifier: Apache-2.0 */
#include "sched_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t mix(uint64_t h, int32_t token, int form)
{
    h ^= (uint64_t)(uint32_t)token << 2 | (uint64_t)form;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static fake_kv kv_after(fake_kv before, int32_t token, fm_form form)
{
    return (fake_kv){.text  = mix(before.text, token, 0),
                     .forms = mix(before.forms, token, form == FM_FORM_PROMPT ? 1 : 2)};
}

static fm_form form_at(const fm_request *r, int pos)
{
    return pos < r->n_prompt ? FM_FORM_PROMPT : FM_FORM_GENERATED;
}

static int32_t next_token(const fake_model *m, fake_kv last)
{
    const uint64_t h = m->same_form ? last.forms : last.text;
    return (int32_t)((h >> 17) % (uint64_t)m->vocab);
}

void fake_open(fake_model *m, const fm_sched_options *opt, int vocab, int same_form)
{
    *m = (fake_model){.page_size = opt->page_size, .vocab = vocab, .same_form = same_form};
    m->kv = calloc((size_t)opt->n_page * (size_t)opt->page_size, sizeof *m->kv);
    assert_non_null(m->kv);
}

void fake_close(fake_model *m)
{
    free(m->kv);
}

static fake_kv *kv_at(const fake_model *m, const int32_t *page, int pos)
{
    return &m->kv[(size_t)page[pos / m->page_size] * (size_t)m->page_size +
                  (size_t)(pos % m->page_size)];
}

static fm_request *owner(const fm_span *span, fm_request *const *request, int n)
{
    for (int i = 0; i < n; i++)
        if (request[i]->has_lease && request[i]->lease.page == span->page) return request[i];
    fail_msg("a span's pages belong to no running request");
    return NULL;
}

/* Every key below `pos` is the one this text would have written. */
static fake_kv read_keys(const fake_model *m, const fm_request *r, int pos)
{
    fake_kv want = {0};
    for (int p = 0; p < pos; p++) {
        const fake_kv *got = kv_at(m, r->lease.page, p);
        want = kv_after(want, r->token[p], form_at(r, p));
        assert_int_equal(got->text, want.text);
        if (m->same_form) assert_int_equal(got->forms, want.forms);
    }
    return pos ? *kv_at(m, r->lease.page, pos - 1) : (fake_kv){0};
}

static void run_row(fake_model *m, const fm_request *r, const fm_batch *b, const fm_span *span,
                    int row)
{
    const int pos = span->pos0 + row - span->row0;

    assert_int_equal(b->pos[row], pos);
    assert_int_equal(b->token[row], r->token[pos]);
    assert_int_equal(span->form, form_at(r, pos));
    assert_in_range(pos / m->page_size, r->lease.n_shared, r->lease.n_page - 1);

    fake_kv *cell = kv_at(m, r->lease.page, pos);
    assert_true(cell->step < m->n_step); /* no other row wrote it in this step */
    const int32_t token = b->token[row] < 0 ? m->chosen[FM_CHOICE(b->token[row])] : b->token[row];
    *cell      = kv_after(read_keys(m, r, pos), token, span->form);
    cell->step = m->n_step;
}

/* The spans of a step follow each other and go on where each text was. */
static void run_spans(fake_model *m, const fm_batch *b, fm_request *const *request, int n)
{
    int               row = 0, end = 0;
    const fm_request *last = NULL;

    for (int i = 0; i < b->n_span; i++) {
        const fm_span    *span = &b->span[i];
        const fm_request *r    = owner(span, request, n);
        assert_int_equal(span->row0, row);
        assert_true(span->n_row > 0);
        assert_int_equal(span->pos0, r == last ? end : r->n_computed);
        for (; row < span->row0 + span->n_row; row++) run_row(m, r, b, span, row);
        last = r;
        end  = span->pos0 + span->n_row;
    }
    assert_int_equal(row, b->n_row);
}

void fake_run(fake_model *m, const fm_sched *s, const fm_batch *b, fm_request *const *request,
              int n, int32_t *token)
{
    m->n_step++;
    run_spans(m, b, request, n);
    for (int i = 0; i < b->n_out; i++) {
        const fm_out     *o = fm_sched_out(s, b, i);
        const fm_request *r = o->r;
        assert_true(i == 0 || b->out[i] > b->out[i - 1]);
        const fake_kv *last = kv_at(m, r->lease.page, o->pos);
        assert_int_equal(b->pos[b->out[i]], o->pos);
        assert_int_equal(last->step, m->n_step);
        assert_int_equal(o->is_score, o->pos < r->n_prompt - 1);
        if (!o->is_score) assert_in_range(o->pos, r->n_token - 1, r->n_token - 1 + r->n_draft);
        token[i] = o->is_score ? -1 : next_token(m, *last);
    }
    m->chosen = token;
}

static int is_stop(const fm_sched_options *opt, const fm_sampling *p, int32_t id)
{
    for (int i = 0; i < opt->n_eos; i++)
        if (opt->eos[i] == id) return 1;
    for (int i = 0; i < p->n_stop_id; i++)
        if (p->stop_id[i] == id) return 1;
    return 0;
}

int fake_answer(const fake_model *m, const fm_sched_options *opt, const fm_request *r,
                int32_t *output, fm_finish *finish)
{
    const fm_sampling *p  = &r->sampling;
    fake_kv            kv = {0};

    for (int i = 0; i < r->n_prompt; i++) kv = kv_after(kv, r->token[i], FM_FORM_PROMPT);
    for (int n = 0; n < p->max_new_tokens; n++) {
        output[n] = next_token(m, kv);
        if (!p->ignore_eos && n >= p->min_new_tokens && is_stop(opt, p, output[n])) {
            *finish = FM_FINISH_STOP;
            return n + 1;
        }
        kv = kv_after(kv, output[n], FM_FORM_GENERATED);
    }
    *finish = FM_FINISH_LENGTH;
    return p->max_new_tokens;
}
