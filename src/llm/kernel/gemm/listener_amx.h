/* SPDX-License-Identifier: Apache-2.0 */
/* Who is called back for finished rows of a product on AMX tiles (fm_gemm_telling_fn). */
#ifndef FM_LLM_KERNEL_GEMM_LISTENER_AMX_H
#define FM_LLM_KERNEL_GEMM_LISTENER_AMX_H

#include "llm/kernel/gemm/gemm.h"
#include "llm/kernel/tiles_amx.h"

/* done may be NULL: there is no callback. */
typedef struct {
    fm_rows_done *done;
    void         *ctx;
} fm__listener;

/* Rows [from, from + n) of c are final: what tile stores wrote there may be read. */
static inline void fm__tell(const fm__listener *l, int from, int n)
{
    if (!l->done) return;
    fm__memory_is_written();
    l->done(l->ctx, from, n);
}

#endif
