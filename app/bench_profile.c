/* SPDX-License-Identifier: Apache-2.0 */
/* fathom bench --profile: the timed call is recorded, and the verdict on it printed. */
#include "bench.h"

#include <stdio.h>

#include "trace_report/analysis.h"
#include "trace_report/usual_rates.h"
#include "trace_report/verdict.h"

static void put_name(fm_str *out, const fm_bench_options *b)
{
    fm_str_printf(out, "%s.trace", b->profile_prefix);
}

fm_status fm_bench_profile_begin(const fm_bench_options *b, fm_engine *e)
{
    fm_str file = {0};
    if (!b->profile) return FM_OK;
    put_name(&file, b);
    const fm_status rc = fm_engine_trace_begin(e, file.text, 0);
    fm_str_fini(&file);
    return rc;
}

fm_status fm_bench_profile_end(const fm_bench_options *b, fm_engine *e)
{
    return b->profile ? fm_engine_trace_end(e) : FM_OK;
}

fm_status fm_bench_profile_explain(const fm_bench_options *b)
{
    fm_status         rc   = FM_OK;
    fm_str            file = {0}, words = {0};
    fm_trace_job      job      = {0};
    fm_trace_analysis analysis = {0};
    fm_rates          rates    = {0};
    if (!b->profile) return FM_OK;
    put_name(&file, b);
    FM_GO(fm_trace_job_open(&job, (const char *const *)&file.text, 1));
    const int has_rates = fm_trace_usual_rates(&rates, &job);
    FM_GO(fm_trace_analyse(&analysis, &job, has_rates ? &rates : NULL));
    fm_trace_verdict(&words, &analysis);
    printf("\nWhere the time went (fathom trace %s has more):\n%s", file.text, words.text);
out:
    fm_trace_analysis_fini(&analysis);
    fm_rates_fini(&rates);
    fm_trace_job_close(&job);
    fm_str_fini(&words);
    fm_str_fini(&file);
    return rc;
}
