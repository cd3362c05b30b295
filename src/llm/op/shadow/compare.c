/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the CPU against rows of the GPU, and what came of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "llm/op/shadow/shadow_internal.h"

const fm_shadow_bound fm__shadow_bound[FM_N_OP] = {
    [FM_OP_EMBED]       = {1, 0, 0},
    [FM_OP_RMSNORM]     = {1, 0x1p-7, 0x1p-16},
    [FM_OP_GATHER_ADD]  = {1, 0, 0x1p-22},
    [FM_OP_LINEAR]      = {1, 0, 0x1p-11},
    [FM_OP_HEAD]        = {1, 0, 0x1p-11},
    [FM_OP_LINEAR_ACT]  = {1, 0x1p-7, 0x1p-11},
    [FM_OP_ROPE_Q]      = {1, 0x1p-7, 0x1p-9},
    [FM_OP_STORE_KV]    = {1, 0x1p-7, 0x1p-9},
    [FM_OP_ATTEND]      = {1, 0x1p-7, 0x1p-6},
    [FM_OP_ROUTE]       = {1, 0x1p-10, 0},
    [FM_OP_MLP]         = {1, 0, 0x1p-8},
    [FM_OP_EXPERTS]     = {1, 0, 0x1p-7}, /* the GPU rounds what each expert adds to bf16, too */
    [FM_OP_GATHER_NORM] = {1, 0x1p-7, 0x1p-16},
    [FM_OP_HIDDEN]      = {1, 0x1p-6, 0x1p-8},
};

/* With activations in E4M3 (W8A8) the tensor cores keep about 13 bits inside a step of 32 k, and
 * where a middle is quantised from sums that differ so, now and then the next E4M3 number is
 * chosen, a sixteenth away. */
static fm_shadow_bound bound_of(const fm_run *r, fm_op op)
{
    fm_shadow_bound b = fm__shadow_bound[op];
    if (!r->config->fp8_activations) return b;
    if (op == FM_OP_LINEAR || op == FM_OP_LINEAR_ACT) b.of_row = 0x1p-8;
    if (op == FM_OP_MLP || op == FM_OP_EXPERTS) b.of_row = 0x1p-5;
    return b;
}

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

/* Rows of one buffer, or one cached token. */
typedef struct {
    const fm_op_call *call;
    const char       *tensor;
    const char       *cpu;
    char             *gpu;      /* its rows have no gaps */
    const int32_t    *row_from; /* the caller's rows; NULL: rows are out rows, as they come */
    int               is_bf16, row0, n_row, width, stride;
} shadow_rows;

static float value(const void *p, size_t i, int is_bf16)
{
    return is_bf16 ? fm_f32_of_bf16(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

static float largest(const shadow_rows *a, const char *row)
{
    float most = 0;
    for (int i = 0; i < a->width; i++) most = fmaxf(most, fabsf(value(row, (size_t)i, a->is_bf16)));
    return most;
}

static void name_difference(fm_run *r, const shadow_rows *a, int row, int col, float cpu, float gpu,
                            double tolerance)
{
    const fm_op_call *c      = a->call;
    const char       *weight = c->weights ? fm__shadow_twin(fm__shadow(r), c->weights)->name : "";
    char              layer[32] = "";
    if (c->layer != FM_NO_LAYER) snprintf(layer, sizeof layer, "layer %d, ", c->layer);
    r->fault =
        fm_fail(FM_E_DEVICE,
                "--shadow: %s%s%s%s, tensor %s, row %d, column %d: %.9g on the CPU, %.9g on "
                "the GPU, tolerance %.3g",
                layer, fm_op_name(c->op), *weight ? " by " : "", weight, a->tensor,
                a->row_from ? a->row_from[row] : row, col, (double)cpu, (double)gpu, tolerance);
}

/* 0: they differ by too much, and that was said. */
static int compare_row(fm_run *r, const shadow_rows *a, int row, const char *cpu, const char *gpu)
{
    const fm_shadow_bound  bound = bound_of(r, a->call->op);
    fm_shadow_count       *count = &fm__shadow(r)->count[a->call->op];
    const double           size  = (double)largest(a, cpu);
    for (int i = 0; i < a->width; i++) {
        const float  want = value(cpu, (size_t)i, a->is_bf16);
        const float  got  = value(gpu, (size_t)i, a->is_bf16);
        const double off  = fabs((double)got - (double)want);
        const double may  = bound.of_value * fabs((double)want) + bound.of_row * size;
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

static void compare_rows(fm_run *r, const shadow_rows *a)
{
    const size_t element = a->is_bf16 ? sizeof(uint16_t) : sizeof(float);
    const size_t row = (size_t)a->width * element, stride = (size_t)a->stride * element;
    const size_t n   = (size_t)(a->n_row - a->row0);
    char        *got = fm__shadow(r)->room, *gpu = a->gpu + (size_t)a->row0 * row;
    const char  *cpu = a->cpu + (size_t)a->row0 * stride;
    if (a->n_row <= a->row0) return;
    fm__shadow_bring(r, got, gpu, n * row);
    for (size_t i = 0; r->fault == FM_OK && i < n; i++) {
        if (!compare_row(r, a, a->row0 + (int)i, cpu + i * stride, got + i * row)) return;
        memcpy(got + i * row, cpu + i * stride, row);
    }
    fm__shadow_send(r, gpu, got, n * row);
}

/* --- ops ------------------------------------------------------------------- */

/* Of rope_q, rows of generated tokens go on to the latent space, where attend is compared. */
static void compare_buffer(fm_run *r, const fm_op_call *c)
{
    const fm_shadow      *s      = fm__shadow(r);
    const fm_shadow_twin *t      = fm__shadow_twin(s, c->out);
    const int             is_out = c->op == FM_OP_GATHER_NORM || c->op == FM_OP_HEAD;
    const shadow_rows     a      = {.call     = c,
                                    .tensor   = t->name,
                                    .cpu      = t->cpu,
                                    .gpu      = t->gpu,
                                    .row_from = is_out ? NULL : s->row_from,
                                    .is_bf16  = t->is_bf16,
                                    .row0     = c->op == FM_OP_ROPE_Q ? s->n_gen : 0,
                                    .n_row    = c->n_row,
                                    .width    = t->width,
                                    .stride   = t->stride};
    compare_rows(r, &a);
}

/* Tokens of one span lie in pages: each is compared where it is cached. */
static void compare_cached(fm_run *r, const fm_op_call *c)
{
    fm_shadow         *s     = fm__shadow(r);
    const fm_cpu      *b     = fm__cpu(s->cpu);
    const fm_cuda_run *g     = fm__gpu(s->gpu);
    const size_t       layer = (size_t)c->layer;
    const int          width = fm_kv_width(r->config);
    for (int k = 0; k < s->batch.n_span; k++)
        for (int i = 0; r->fault == FM_OK && i < s->batch.span[k].n_row; i++) {
            const fm_span    *span = &s->batch.span[k];
            const char       *cpu  = fm__kv_at(s->cpu, b, c->layer, span, span->pos0 + i);
            const size_t      at   = (size_t)(cpu - b->kv) - layer * b->kv_layer;
            const shadow_rows a    = {.call     = c,
                                      .tensor   = "cache",
                                      .cpu      = cpu,
                                      .gpu      = g->kv + layer * g->kv_layer + at,
                                      .row_from = s->row_from + span->row0 + i,
                                      .is_bf16  = 1,
                                      .n_row    = 1,
                                      .width    = width,
                                      .stride   = width};
            compare_rows(r, &a);
        }
}

void fm__shadow_end_op(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    (void)h;
    if (!fm__shadow_is_well(r) || !fm__shadow_bound[c->op].is_compared) return;
    if (c->op == FM_OP_STORE_KV)
        compare_cached(r, c);
    else if (c->op == FM_OP_ROUTE)
        fm__shadow_compare_routes(r, c);
    else
        compare_buffer(r, c);
}

/* --- the table at the end -------------------------------------------------- */

void fm__shadow_report(const fm_run *r, fm_str *out)
{
    fm_str_printf(out, "shadow         values compared   largest difference   allowed, of the "
                       "value and of its row's largest\n");
    for (int i = 0; i < FM_N_OP; i++) {
        const fm_shadow_count *n = &fm__shadow(r)->count[i];
        const fm_shadow_bound  b = bound_of(r, (fm_op)i);
        if (!n->n_value) continue;
        fm_str_printf(out, "  %-12s %15lld %20.2e   %.1e + %.1e\n", fm_op_name((fm_op)i),
                      (long long)n->n_value, n->most, b.of_value, b.of_row);
    }
    const fm_shadow_count *route = &fm__shadow(r)->count[FM_OP_ROUTE];
    const fm_shadow_count *token = &fm__shadow(r)->count[FM_OP_SAMPLE];
    fm_str_printf(out,
                  "  chosen otherwise: %lld experts whose scores nearly tie, %lld drawn tokens\n",
                  (long long)route->n_swap, (long long)token->n_swap);
}
