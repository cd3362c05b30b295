/* SPDX-License-Identifier: Apache-2.0 */
/* --output-details: one line per answer in request order, the same bytes for
 * the same answers, so that two runs are compared with cmp. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "bench.h"

static void write_ids(FILE *f, const char *key, const int32_t *id, int n)
{
    fprintf(f, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) fprintf(f, "%s%d", i ? ", " : "", (int)id[i]);
    fputc(']', f);
}

/* Nine digits bring a float back to the same bits. */
static void write_logprobs(FILE *f, const char *key, const float *x, int n)
{
    fprintf(f, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) fprintf(f, "%s%.9g", i ? ", " : "", (double)x[i]);
    fputc(']', f);
}

static void write_lines(FILE *f, const fm_dataset *rows, const fm_answers *b)
{
    for (int i = 0; i < b->n_row; i++)
        for (int j = 0; j < b->n_sample; j++) {
            const fm_answer *a = &b->answer[i * b->n_sample + j];
            fprintf(f, "{\"index\": %d", i);
            if (b->n_sample > 1) fprintf(f, ", \"sample\": %d", j);
            write_ids(f, "prompt_ids", rows->row[i].token, rows->row[i].n_prompt);
            write_ids(f, "output_ids", a->token, a->n);
            fprintf(f, ", \"finish_reason\": \"%s\"", fm_finish_name(a->finish));
            if (a->prompt_logprob)
                write_logprobs(f, "input_logprobs", a->prompt_logprob, a->n_prompt_logprob);
            if (a->logprob) write_logprobs(f, "output_logprobs", a->logprob, a->n);
            fputs("}\n", f);
        }
}

static fm_status complain(const char *path)
{
    return fm_fail(FM_E_IO, "--output-details %s: %s", path, strerror(errno));
}

/* Beside the file, so that renaming it is one step. */
static FILE *open_draft(const char *path, fm_str *name)
{
    fm_str_printf(name, "%s.%d.tmp", path, (int)getpid());
    return fopen(name->text, "w");
}

fm_status fm_bench_check_details(const char *path)
{
    fm_str          name = {0};
    FILE           *f    = open_draft(path, &name);
    const fm_status rc   = f ? FM_OK : complain(path);
    if (f) fclose(f);
    unlink(name.text);
    fm_str_fini(&name);
    return rc;
}

fm_status fm_bench_write_details(const char *path, const fm_dataset *rows, const fm_answers *batch)
{
    fm_str name = {0};
    FILE  *f    = open_draft(path, &name);
    int    ok   = f != NULL;
    if (f) write_lines(f, rows, batch);
    if (f && ferror(f)) ok = 0;
    if (f && fclose(f) != 0) ok = 0;
    if (ok && rename(name.text, path) != 0) ok = 0;
    const fm_status rc = ok ? FM_OK : complain(path);
    if (!ok) unlink(name.text);
    fm_str_fini(&name);
    return rc;
}
