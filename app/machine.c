/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "machine.h"

#include <sched.h>
#include <string.h>

#include "fathom/fathom.h"
#include "llm/op/backend.h"
#include "llm/options.h"

int fm_usable_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static int says_cpu(const fm_word_list *l)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->word[i], "--device=cpu") ||
            (i && !strcmp(l->word[i], "cpu") && !strcmp(l->word[i - 1], "--device")))
            return 1;
    return 0;
}

fm_status fm_usable_gpus(int *out, const fm_word_list *words)
{
    fm_options *o = NULL;
    FM_TRY(fm_options_create(&o));
    const fm_backend *gpu = fm_backend_cuda();
    const int         cpu = !strcmp(o->device, "cpu") || says_cpu(words);
    *out                  = 0;
    if (!cpu && gpu && gpu->is_usable() == FM_OK) *out = gpu->n_device ? gpu->n_device() : 1;
    fm_options_destroy(o);
    return FM_OK;
}
