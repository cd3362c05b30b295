/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, converting and packing one piece by one thread: weights_fill.c distributes the pieces,
 * fill_piece.c fills them. */
#ifndef FM_LLM_LOAD_FILL_INTERNAL_H
#define FM_LLM_LOAD_FILL_INTERNAL_H

#include "llm/kernel/gemm/gemm.h"
#include "llm/load/source.h"
#include "llm/load/weights_fill.h"
#include "llm/weights/weights.h"

typedef struct {
    const fm_weights *w;
    const fm_source  *source;
    /* Scratch, sized for the largest piece. */
    void  *rows;                 /* rows in the stored type */
    float *wide;                 /* one row in f32 */
    void  *scale;                /* one row of block scales in f32; or 32 of group scales in bf16 */
    void  *transposed;           /* a head's keys, transposed */
    void  *staged;               /* 32 rows side by side, before they go to their place */
    const fm_weights_sink *sink; /* NULL: the weights are in this process's memory */
    int                    thread;
} fm__fill;

fm_status fm__fill_init(fm__fill *f, const fm_weights *w, const fm_source *source);
void      fm__fill_fini(fm__fill *f); /* {0} is fine */

/* Ranges are rows of a table, panels of a matrix, heads of kv_b. */
void fm__fill_vector(fm__fill *f, const fm_piece *p);
void fm__fill_table(fm__fill *f, const fm_piece *p, int begin, int end);
void fm__fill_matrix(fm__fill *f, const fm_piece *p, int begin, int end);
void fm__fill_gate_up(fm__fill *f, const fm_piece *p, int begin, int end);
void fm__fill_kv_b(fm__fill *f, const fm_piece *p, int begin, int end);

void fm__prefetch(const fm__fill *f, const char *tensor, int64_t row0, int64_t row1);

/* FP8: "X.weight" -> "X.weight_scale_inv"; INT4: "X.weight_packed" -> "X.weight_scale". */
enum { FM__SCALE_NAME = 128 };
void fm__scale_name(char out[FM__SCALE_NAME], const fm_tensor *t);

#endif
