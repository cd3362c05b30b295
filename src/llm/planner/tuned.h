/* SPDX-License-Identifier: Apache-2.0 */
/* What steps cost on one kind of machine: its limits, and which share of them each kind of op
 * reaches, by rows and context.  `fathom plan --calibrate` writes such a table; those of some
 * machines ship in tuned/.
 *
 *     seconds of an op = op_s + max(bytes / read, flops / peak) / share(rows, context)
 *
 * so a shape that was never measured follows from one that was.  `step` holds what is left over for
 * whole steps of a model that was measured: seconds measured / seconds by the line above. */
#ifndef FM_LLM_PLANNER_TUNED_H
#define FM_LLM_PLANNER_TUNED_H

#include "base/number.h"
#include "base/status.h"
#include "base/str.h"
#include "llm/planner/table.h"

/* Kinds of work: rows of a table are rows of the step, but rows per expert for EXPERTS and rows
 * with logits for HEAD; context counts for the two forms of attention alone. */
#define FM_WORK_MAP(X)                                                                             \
    X(LINEAR, "linear")                                                                            \
    X(MLP, "mlp")                                                                                  \
    X(EXPERTS, "experts")                                                                          \
    X(GENERATED, "attend_generated")                                                               \
    X(PROMPT, "attend_prompt")                                                                     \
    X(HEAD, "head")                                                                                \
    X(ROWS, "rows")

typedef enum {
#define X(id, name) FM_WORK_##id,
    FM_WORK_MAP(X)
#undef X
        FM_N_WORK
} fm_work_kind;

const char *fm_work_name(fm_work_kind k);

/* The link between two ranks. */
typedef struct {
    double latency_s, bytes_per_s;
} fm_link;

/* What tiers of the KV cache move, in bytes/s; 0: not known. */
typedef struct {
    double host_in, host_out; /* from host memory into a device's pool, and back; of a CPU: copies
                                 within main memory */
    double file_read, file_write; /* of a host's files */
} fm_tier_rates;

/* Whole steps of one model. */
typedef struct {
    char     model[64];
    fm_table generated, prompt; /* steps without and with prompt rows, by their rows */
} fm_tuned_steps;

enum { FM_TUNED_MODELS = 8 };

typedef struct {
    char           name[64];  /* "H200" */
    char           about[96]; /* what was measured, and when */
    int            is_gpu;
    int            n_thread; /* of a host, that reach what follows; ranks divide them */
    double         memory;   /* bytes: of a GPU, or of the host */
    double         reserve;  /* bytes that no plan counts */
    double         read;     /* bytes/s: of a GPU, or of all threads of the host */
    double         read_one; /* of one thread while the others rest; 0: its part of `read` */
    double         peak_f32, peak_bf16, peak_fp8; /* FLOP/s: of a GPU, or of all threads */
    double         op_s;                          /* of an op, whatever it does */
    double         step_s, out_s; /* of a step and of a row with logits, around the forward pass */
    double         spread;        /* of repeated measurements, relative */
    fm_link        near, far;     /* between ranks of one host, and of two; 0: not known */
    fm_tier_rates  tiers;
    fm_table       share[FM_N_WORK];
    fm_tuned_steps step[FM_TUNED_MODELS];
    int            n_step;
} fm_tuned;

/* "tiers": {"host_in_bytes_per_s": ..., ...}, as tables and descriptions of clusters have it; NULL:
 * there is none. */
struct json_t;
fm_status fm_tier_rates_read(fm_tier_rates *out, const struct json_t *o, const char *file);

double fm_tuned_peak(const fm_tuned *t, fm_dtype factor);

/* Of a model that was measured; NULL: it was not. */
const fm_tuned_steps *fm_tuned_steps_of(const fm_tuned *t, const char *model);
fm_tuned_steps *fm_tuned_add_steps(fm_tuned *t, const char *model); /* there or new; NULL: full */

/* FM_E_IO, or FM_E_FORMAT naming file and field. */
fm_status fm_tuned_load(fm_tuned *out, const char *path);
fm_status fm_tuned_parse(fm_tuned *out, const char *text, size_t len, const char *name);
void      fm_tuned_print(const fm_tuned *t, fm_str *out); /* the JSON text */

/* tuned/NAME.json in the first of these that has it: $FM_TUNED_DIR, ./tuned, ~/.cache/fathom/tuned,
 * and where fathom is installed or was built.  *where gets the path.  FM_E_IO names all of them. */
fm_status fm_tuned_find(fm_tuned *out, const char *name, fm_str *where);

/* Where --calibrate writes when nothing is said: ~/.cache/fathom/tuned/NAME.json. */
fm_status fm_tuned_home(fm_str *path, const char *name);

/* A name as a file has it: small letters, digits and dashes. */
void fm_tuned_file_name(fm_str *out, const char *name);

#endif
