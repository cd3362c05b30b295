/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/output.h"

double fm_gpu_percent(const fm_gpu_result *x) { return x->us > 0 ? 100 * x->bound_us / x->us : 0; }

static void print_head(const fm_gpu_result *x)
{
    printf("\n%-18s %-32s %6s %11s %8s %9s %11s %6s\n", x->section, "shape", "T", "us", "GB/s",
           "TFLOP/s", "tok/s", "%");
}

/* A rate, or a blank where there is none. */
static void print_rate(const char *format, int width, double per_us, double unit)
{
    if (per_us > 0)
        printf(format, per_us * 1e6 / unit);
    else
        printf(" %*s", width, "");
}

static void print_line(const fm_gpu_result *x)
{
    printf("%-18s %-32s", x->name, x->shape);
    if (x->unit[0]) {
        printf(" %18.6g %s\n", x->value, x->unit);
        return;
    }
    if (x->T)
        printf(" %6d", x->T);
    else
        printf(" %6s", "");
    printf(" %11.2f", x->us);
    print_rate(" %8.0f", 8, x->bytes / x->us, 1e9);
    print_rate(" %9.1f", 9, x->flop / x->us, 1e12);
    print_rate(" %11.1f", 11, x->tokens / x->us, 1);
    if (x->bound_us > 0) printf(" %5.1f%%", fm_gpu_percent(x));
    printf("\n");
}

static double larger(double a, double b) { return a > b ? a : b; }

/* The first measured one replaces what was assumed. */
static void take_ceiling(fm_gpu_report *r, const fm_gpu_result *x)
{
    const double bytes = x->bytes / x->us * 1e6, flop = x->flop / x->us * 1e6;
    if (strcmp(x->section, "ceilings") != 0) return;
    if (!strcmp(x->name, FM_GPU_COPY)) r->ceilings.bandwidth = bytes;
    if (!strcmp(x->name, FM_GPU_READ)) r->ceilings.bandwidth = larger(r->ceilings.bandwidth, bytes);
    if (!strcmp(x->name, FM_GPU_BF16)) r->ceilings.bf16 = flop;
    if (!strcmp(x->name, FM_GPU_FP8)) r->ceilings.fp8 = flop;
}

void fm_gpu_report_add(fm_gpu_report *r, const fm_gpu_result *x)
{
    if (r->n == r->cap) {
        r->cap    = r->cap ? 2 * r->cap : 256;
        r->result = realloc(r->result, (size_t)r->cap * sizeof *r->result);
        FM_BUG_UNLESS(r->result != NULL);
    }
    if (r->n == 0 || strcmp(r->result[r->n - 1].section, x->section) != 0) print_head(x);
    if (!strcmp(x->section, "device") && !strcmp(x->name, "GPU"))
        snprintf(r->gpu, sizeof r->gpu, "%s", x->shape);
    r->result[r->n++] = *x;
    take_ceiling(r, x);
    print_line(x);
    fflush(stdout);
}

void fm_gpu_report_fault(fm_gpu_report *r, const char *section, const char *why)
{
    const size_t at = strlen(r->fault);
    snprintf(r->fault + at, sizeof r->fault - at, "%s%s: %s", at ? "; " : "", section, why);
    printf("%s: %s\n", section, why);
    fflush(stdout);
}

void fm_gpu_report_fini(fm_gpu_report *r)
{
    free(r->result);
    r->result = NULL;
    r->n = r->cap = 0;
}

static void set(json_t *o, const char *key, double value)
{
    if (value != 0) json_object_set_new(o, key, json_real(value));
}

static json_t *result_json(const fm_gpu_result *x)
{
    json_t *o =
        json_pack("{s:s, s:s, s:s}", "section", x->section, "name", x->name, "shape", x->shape);
    if (x->unit[0]) {
        json_object_set_new(o, "value", json_real(x->value));
        json_object_set_new(o, "unit", json_string(x->unit));
        return o;
    }
    set(o, "T", x->T);
    set(o, "us", x->us);
    set(o, "bytes", x->bytes);
    set(o, "flop", x->flop);
    set(o, "bound_us", x->bound_us);
    set(o, "percent", fm_gpu_percent(x));
    if (x->us > 0) set(o, "tokens_per_second", x->tokens / x->us * 1e6);
    return o;
}

fm_status fm_gpu_report_json(const fm_gpu_report *r, const char *path)
{
    json_t *list = json_array();
    char    date[16];
    fm_today(date);
    for (int i = 0; i < r->n; i++) json_array_append_new(list, result_json(&r->result[i]));
    json_t *all = json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:s, s:o}", "gpu", r->gpu, "date", date,
                            "commit", r->commit, "bytes_per_second", r->ceilings.bandwidth,
                            "bf16_flop_per_second", r->ceilings.bf16, "fp8_flop_per_second",
                            r->ceilings.fp8, "fault", r->fault, "results", list);
    return fm_write_json(path, all);
}

/* --- tables ----------------------------------------------------------------- */

static void write_cell(fm_str *out, const char *format, double value)
{
    if (value > 0)
        fm_str_printf(out, format, value);
    else
        fm_str_puts(out, " – |");
}

static void write_row(fm_str *out, const fm_gpu_result *x)
{
    fm_str_printf(out, "| %s | %s |", x->name, x->shape);
    if (x->unit[0]) {
        fm_str_printf(out, " | %.6g %s | | | | |\n", x->value, x->unit);
        return;
    }
    write_cell(out, " %.0f |", x->T);
    write_cell(out, " %.1f |", x->us);
    write_cell(out, " %.0f |", x->bytes / x->us * 1e-3);
    write_cell(out, " %.1f |", x->flop / x->us * 1e-6);
    write_cell(out, " %.0f |", x->tokens / x->us * 1e6);
    write_cell(out, " %.0f %% |", fm_gpu_percent(x));
    fm_str_puts(out, "\n");
}

static void write_tables(fm_str *out, const fm_gpu_report *r)
{
    char date[16];
    fm_today(date);
    fm_str_printf(out,
                  "%s, %s, commit %s. Measured limits: %.0f GB/s, %.0f TFLOP/s in BF16, %.0f in FP8.\n",
                  r->gpu, date, r->commit, r->ceilings.bandwidth * 1e-9, r->ceilings.bf16 * 1e-12,
                  r->ceilings.fp8 * 1e-12);
    for (int i = 0; i < r->n; i++) {
        if (i == 0 || strcmp(r->result[i - 1].section, r->result[i].section) != 0)
            fm_str_printf(out,
                          "\n| %s | shape | T | us | GB/s | TFLOP/s | tok/s | of limit |\n"
                          "|---|---|---:|---:|---:|---:|---:|---:|\n",
                          r->result[i].section);
        write_row(out, &r->result[i]);
    }
}

fm_status fm_gpu_report_markdown(const fm_gpu_report *r, const char *path)
{
    fm_str out = {0};
    write_tables(&out, r);
    const fm_status rc = fm_write_text(path, &out);
    fm_str_fini(&out);
    return rc;
}
