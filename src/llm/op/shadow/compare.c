/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the CPU against rows of the GPU, and what came of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "llm/op/shadow/shadow_internal.h"

const fm_shadow_bound fm__shadow_bound[FM_N_SHADOW_OP] = {
#define X(name, text, of_value, of_row) {text, of_value, of_row},
    FM_SHADOW_MAP(X)
#undef X
};

/* --- bytes to and fro ------------------------------------------------------ */

void fm__shadow_bring(fm_run *r, void *to, const void *gpu, size_t bytes)
{
    const fm_stream stream = fm__gpu(fm__shadow(r)->gpu)->stream;
    if (r->fault != FM_OK || !bytes) return;
    if (fm__is_well(r, fm_cuda_download(to, gpu, bytes, stream)))
        fm__is_well(r, fm_cuda_stream_wait(stream));
}

void fm__shadow_send(fm_run *r, void *gpu, const void *from, size_t bytes)
{
    const fm_stream stream = fm__gpu(fm__shadow(r)->gpu)->stream;
    if (r->fault == FM_OK && bytes) fm__is_well(r, fm_cuda_upload(gpu, from, bytes, stream));
}

/* --- rows ------------------------------------------------------------------ */

static float value(const void *p, size_t i, int is_bf16)
{
    return is_bf16 ? fm_f32_of_bf16(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

static float largest(const fm_shadow_rows *a, const char *row)
{
    float most = 0;
    for (int i = 0; i < a->width; i++) most = fmaxf(most, fabsf(value(row, (size_t)i, a->is_bf16)));
    return most;
}

static void name_difference(fm_run *r, const fm_shadow_rows *a, int row, int col, float cpu,
                            float gpu, double tolerance)
{
    const fm_shadow *s = fm__shadow(r);
    char             layer[32] = "";
    if (s->layer >= 0) snprintf(layer, sizeof layer, "layer %d, ", s->layer);
    r->fault = fm_fail(FM_E_DEVICE,
                       "--shadow: %s%s%s%s, tensor %s, row %d, column %d: %.9g on the CPU, %.9g on "
                       "the GPU, tolerance %.3g",
                       layer, fm__shadow_bound[a->op].name, a->weight ? " by " : "",
                       a->weight ? a->weight : "", a->tensor, a->row_from ? a->row_from[row] : row,
                       col, (double)cpu, (double)gpu, tolerance);
}

/* 0: too far apart, and said so. */
static int compare_row(fm_run *r, const fm_shadow_rows *a, int row, const char *cpu,
                       const char *gpu)
{
    const fm_shadow_bound *bound = &fm__shadow_bound[a->op];
    fm_shadow_count       *count = &fm__shadow(r)->count[a->op];
    const double           size  = (double)largest(a, cpu);
    for (int i = 0; i < a->width; i++) {
        const float  want = value(cpu, (size_t)i, a->is_bf16);
        const float  got  = value(gpu, (size_t)i, a->is_bf16);
        const double off = fabs((double)got - (double)want);
        const double may = bound->of_value * fabs((double)want) + bound->of_row * size;
        if (!memcmp(&want, &got, sizeof want)) continue; /* infinities, too */
        if (!(off <= may)) {
            name_difference(r, a, row, i, want, got, may);
            return 0;
        }
        if (off > count->most * size) count->most = off / size;
    }
    count->n_value += a->width;
    return 1;
}

/* The GPU's rows have no gaps: the CPU's go there by way of the room. */
void fm__shadow_compare(fm_run *r, const fm_shadow_rows *a)
{
    const size_t element = a->is_bf16 ? sizeof(uint16_t) : sizeof(float);
    const size_t row = (size_t)a->width * element, apart = (size_t)a->apart * element;
    const size_t n   = (size_t)(a->n_row - a->row0);
    char        *got = fm__shadow(r)->room, *gpu = (char *)a->gpu + (size_t)a->row0 * row;
    const char  *cpu = (const char *)a->cpu + (size_t)a->row0 * apart;
    if (a->n_row <= a->row0) return;
    fm__shadow_bring(r, got, gpu, n * row);
    for (size_t i = 0; r->fault == FM_OK && i < n; i++) {
        if (!compare_row(r, a, a->row0 + (int)i, cpu + i * apart, got + i * row)) return;
        memcpy(got + i * row, cpu + i * apart, row);
    }
    fm__shadow_send(r, gpu, got, n * row);
}

/* --- the table at the end -------------------------------------------------- */

void fm__shadow_report(const fm_run *r, fm_str *out)
{
    fm_str_printf(out, "shadow         values compared   largest difference   allowed, of the "
                       "value and of its row's largest\n");
    for (int i = 0; i < FM_N_SHADOW_OP; i++) {
        const fm_shadow_count *n = &fm__shadow(r)->count[i];
        const fm_shadow_bound *b = &fm__shadow_bound[i];
        if (!n->n_value) continue;
        fm_str_printf(out, "  %-12s %15lld %20.2e   %.1e + %.1e\n", b->name, (long long)n->n_value,
                      n->most, b->of_value, b->of_row);
    }
    const fm_shadow_count *route = &fm__shadow(r)->count[FM_SHADOW_ROUTE];
    const fm_shadow_count *token = &fm__shadow(r)->count[FM_SHADOW_SAMPLE];
    fm_str_printf(out,
                  "  chosen otherwise: %lld experts whose scores nearly tie, %lld drawn tokens\n",
                  (long long)route->n_swap, (long long)token->n_swap);
}
