/* SPDX-License-Identifier: Apache-2.0 */
/* --output-details: one line per answer in request order, the same bytes for
 * the same answers, so that two runs are compared with cmp. */
#include <math.h>
#include <stdio.h>

#include "bench.h"
#include "output_file.h"

static void write_ids(FILE *f, const char *key, const int32_t *id, int n)
{
    fprintf(f, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) fprintf(f, "%s%d", i ? ", " : "", (int)id[i]);
    fputc(']', f);
}

/* Nine digits bring a float back to the same bits.  JSON has no infinity, which is
 * the logarithm of an impossible token: null. */
static void write_logprobs(FILE *f, const char *key, const float *x, int n)
{
    fprintf(f, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) {
        if (i) fputs(", ", f);
        if (isfinite(x[i]))
            fprintf(f, "%.9g", (double)x[i]);
        else
            fputs("null", f);
    }
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

fm_status fm_bench_write_details(const char *path, const fm_dataset *rows, const fm_answers *batch)
{
    fm_output_file o;
    FM_TRY(fm_output_create(&o, "output-details", path));
    write_lines(o.to, rows, batch);
    return fm_output_close(&o);
}
