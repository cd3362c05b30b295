/* SPDX-License-Identifier: Apache-2.0 */
/* The part of `fathom doctor` that is about a model: would it load here, and how long would it take? */
#ifndef FM_APP_DOCTOR_H
#define FM_APP_DOCTOR_H

#include "llm/engine.h"
#include "probe/checkup.h"

typedef struct {
    int               is_asked; /* a model was named */
    fm_status         rc;       /* would it load? */
    char              why[400]; /* why not */
    fm_engine_planned planned;
    double            file_bytes; /* of its directory */
    double            load_s;     /* expected; 0: not known */
} fm_doctor_model;

/* By all ranks: the memory plan of a model, as an engine would make it. */
void fm_doctor_plan(fm_doctor_model *m, const fm_options *o, fm_world *w);

/* On rank 0, after the checkup: how long loading takes at the measured rates. */
void fm_doctor_expect(fm_doctor_model *m, const fm_checkup *c);

void fm_doctor_print_model(fm_str *out, const fm_doctor_model *m);
void fm_doctor_model_json(fm_str *out, const fm_doctor_model *m); /* an object; "" without a model */

/* Large products on a GPU by cuBLASLt; in builds with CUDA. */
fm_gpu_product fm_doctor_gpu_product;

#endif
