/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

/* --- files ------------------------------------------------------------------- */

static fm_status add_file(fm_trace_job *j, const char *path)
{
    fm_trace_file *grown = realloc(j->file, (size_t)(j->n + 1) * sizeof *grown);
    if (!grown) return fm_fail(FM_E_OOM, "traces");
    j->file = grown;
    FM_TRY(fm_trace_load(&j->file[j->n], path));
    const fm_trace_head *h = &j->file[j->n++].head, *first = &j->file[0].head;
    if (h->job != first->job || h->n_rank != first->n_rank)
        return fm_fail(FM_E_FORMAT, "%s is of another job than the trace before it", path);
    for (int i = 0; i + 1 < j->n; i++)
        if (j->file[i].head.rank == h->rank)
            return fm_fail(FM_E_FORMAT, "%s: a second trace of rank %d", path, h->rank);
    return FM_OK;
}

/* FILE.rank0 says how many there should be; those that are missing are left out. */
static fm_status add_ranks(fm_trace_job *j, const char *stem)
{
    fm_str    path = {0};
    fm_status rc   = FM_OK;
    int       n    = 1;
    for (int i = 0; rc == FM_OK && i < n; i++) {
        fm_str_clear(&path);
        fm_str_printf(&path, "%s.rank%d", stem, i);
        if (i && access(path.text, F_OK) != 0) continue;
        rc = add_file(j, path.text);
        if (rc == FM_OK) n = j->file[0].head.n_rank;
    }
    fm_str_fini(&path);
    return rc;
}

static fm_status add_path(fm_trace_job *j, const char *path)
{
    fm_str first = {0};
    fm_str_printf(&first, "%s.rank0", path);
    const int has_ranks = access(path, F_OK) != 0 && access(first.text, F_OK) == 0;
    fm_str_fini(&first);
    return has_ranks ? add_ranks(j, path) : add_file(j, path);
}

static int by_rank(const void *a, const void *b)
{
    const fm_trace_file *x = a, *y = b;
    return (x->head.rank > y->head.rank) - (x->head.rank < y->head.rank);
}

/* --- rows -------------------------------------------------------------------- */

static int same_key(const fm_trace_key *a, const fm_trace_key *b)
{
    return a->cls == b->cls && !strcmp(a->name, b->name) && !strcmp(a->part, b->part) &&
           !strcmp(a->factor, b->factor);
}

static int find_row(const fm_trace_job *j, const fm_trace_key *k)
{
    for (int r = 0; r < j->n_row; r++)
        if (same_key(&j->row[r].key, k)) return r;
    return -1;
}

static fm_status add_row(fm_trace_job *j, const fm_trace_key *k)
{
    fm_trace_row *grown = realloc(j->row, (size_t)(j->n_row + 1) * sizeof *grown);
    if (!grown) return fm_fail(FM_E_OOM, "traces");
    j->row    = grown;
    int *seat = malloc((size_t)j->n * sizeof *seat);
    if (!seat) return fm_fail(FM_E_OOM, "traces");
    for (int i = 0; i < j->n; i++) seat[i] = -1;
    j->row[j->n_row++] = (fm_trace_row){*k, seat};
    return FM_OK;
}

static fm_status join_keys(fm_trace_job *j)
{
    j->row_of = malloc((size_t)j->n * sizeof *j->row_of);
    if (!j->row_of) return fm_fail(FM_E_OOM, "traces");
    for (int i = 0; i < j->n; i++)
        for (int k = 0; k < j->file[i].n_key; k++) {
            int r = find_row(j, &j->file[i].key[k]);
            if (r < 0) {
                FM_TRY(add_row(j, &j->file[i].key[k]));
                r = j->n_row - 1;
            }
            j->row_of[i][k]      = r;
            j->row[r].of_rank[i] = k;
            j->row[r].key.flags |= j->file[i].key[k].flags;
        }
    return FM_OK;
}

fm_status fm_trace_job_open(fm_trace_job *out, const char *const *path, int n_path)
{
    fm_trace_job j  = {0};
    fm_status    rc = FM_OK;
    for (int i = 0; rc == FM_OK && i < n_path; i++) rc = add_path(&j, path[i]);
    if (rc == FM_OK) {
        qsort(j.file, (size_t)j.n, sizeof *j.file, by_rank);
        j.n_rank = j.file[0].head.n_rank;
        rc       = join_keys(&j);
    }
    if (rc == FM_OK)
        *out = j;
    else
        fm_trace_job_close(&j);
    return rc;
}

void fm_trace_job_close(fm_trace_job *j)
{
    for (int i = 0; i < j->n; i++) fm_trace_file_fini(&j->file[i]);
    for (int r = 0; r < j->n_row; r++) free(j->row[r].of_rank);
    free(j->file);
    free(j->row);
    free(j->row_of);
    *j = (fm_trace_job){0};
}

const fm_trace_sum *fm_trace_sum_of(const fm_trace_job *j, int row, int i)
{
    const int key = j->row[row].of_rank[i];
    return key < 0 ? NULL : &j->file[i].sum[key];
}

/* --- time -------------------------------------------------------------------- */

/* Between two comparisons of clocks the offset changes evenly. */
static double offset_at(const fm_trace_head *h, uint64_t clock)
{
    const fm_trace_clock *a = &h->clock[0], *b = &h->clock[1];
    if (!b->at_ns || b->at_ns <= a->at_ns) return (double)a->offset_ns;
    const double part = ((double)clock - (double)a->at_ns) / (double)(b->at_ns - a->at_ns);
    return (double)a->offset_ns + part * (double)(b->offset_ns - a->offset_ns);
}

int64_t fm_trace_time(const fm_trace_job *j, int i, uint64_t ns)
{
    const fm_trace_head *h     = &j->file[i].head;
    const uint64_t       clock = h->epoch_ns + ns;
    return (int64_t)(clock - j->file[0].head.epoch_ns) + (int64_t)offset_at(h, clock);
}
