/* SPDX-License-Identifier: Apache-2.0 */
/* A parameter space, a line each; lines that begin with ! are constraints.  A point of it can be
 * drawn, written and read again. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tune/space.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const fm_space *s)
{
    fm_mt    random;
    fm_point p    = {{0}};
    fm_str   text = {0};
    fm_mt_seed_python(&random, 1);
    if (!s->n || fm_point_random(s, &random, &p) != FM_OK) return;
    for (int i = 0; i < s->n; i++) {
        double value = 0;
        if (isnan(p.v[i])) continue;
        fm_str_clear(&text);
        fm_point_text(s, &p, i, &text);
        FM_BUG_UNLESS(fm_param_read(&s->param[i], text.text, &value) == FM_OK);
        FM_BUG_UNLESS(fm_param_unit(&s->param[i], value) >= 0 &&
                      fm_param_unit(&s->param[i], value) <= 1);
    }
    fm_str_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fm_space s    = {0};
    char    *text = malloc(size + 1), *at = text;
    if (!text || size > 2048) {
        free(text);
        return 0;
    }
    memcpy(text, data, size);
    text[size] = 0;
    for (char *line; (line = strsep(&at, "\n"));)
        if ((*line == '!' ? fm_space_constrain(&s, line + 1) : fm_space_add(&s, line)) != FM_OK)
            FM_BUG_UNLESS(fm_why()[0]);
    use(&s);
    fm_space_fini(&s);
    free(text);
    return 0;
}
