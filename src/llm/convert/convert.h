/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint with 4-bit or 8-bit weights from one in BF16 or FP8.
 *
 *     files of MODEL ──one by one──> files of OUT of the same names, the index, config.json
 *
 * Linear layers are quantised (of every layer, or of routed experts alone); embeddings, head,
 * norms and routers are copied, and FP8 weights that are not quantised again become BF16.  One
 * stretch of 128 rows is in memory at a time.
 *
 * A file appears under its name only when it is complete, config.json last: a folder without it is
 * no model.  While a conversion is under way, OUT/convert.json says which; called again with the
 * same request, it goes on with the files that are missing. */
#ifndef FM_LLM_CONVERT_CONVERT_H
#define FM_LLM_CONVERT_CONVERT_H

#include "base/status.h"

typedef enum { FM_CONVERT_INT4, FM_CONVERT_FP8 } fm_convert_type;

typedef struct {
    const char     *model, *out; /* folders */
    fm_convert_type type;
    int             experts_only;
    int             show_progress;
} fm_convert_request;

typedef struct {
    long long n_quantised;     /* tensors */
    long long bytes_in, bytes; /* of all tensors */
    int       n_resumed;       /* files that were there already */
} fm_convert_report;

fm_status fm_convert(const fm_convert_request *r, fm_convert_report *report);

#endif
