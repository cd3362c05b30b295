/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "default_model.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fathom/fathom.h"

/* PREFIX/bin/fathom has its model in PREFIX/share. */
static int beside_program(char *out, size_t size)
{
    char          program[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0) return 0;
    program[n] = 0;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(program, '/');
        if (!slash) return 0;
        *slash = 0;
    }
    return snprintf(out, size, "%s/share/fathom/models/fathom-tiny", program) < (int)size;
}

static int is_model(const char *dir)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/config.json", dir);
    return access(path, R_OK) == 0;
}

static fm_status take_box_model(fm_options *o)
{
    char dir[PATH_MAX];
    if (beside_program(dir, sizeof dir) && is_model(dir)) return fm_options_set(o, "model-path", dir);
    if (is_model(FM_SOURCE_MODEL)) return fm_options_set(o, "model-path", FM_SOURCE_MODEL);
    return fm_fail(FM_E_ARG, "which model? give --model-path (fathom-tiny is not installed)");
}

fm_status fm_named_model(fm_options *o)
{
    if (!o->model_path || strcmp(o->model_path, "fathom-tiny") || is_model(o->model_path))
        return FM_OK;
    return take_box_model(o);
}

fm_status fm_default_model(fm_options *o)
{
    return o->model_path ? fm_named_model(o) : take_box_model(o);
}
