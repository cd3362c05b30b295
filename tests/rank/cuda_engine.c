/* SPDX-License-Identifier: Apache-2.0 */
/* A whole engine on GPUs, which are emulated here, as several ranks:
 *
 *     cuda_engine MODEL TOKENIZER TRANSCRIPT [OPTION VALUE]...
 *
 * Rank 0 puts requests of every kind through it and writes what was said. */
#include <stdio.h>
#include <stdlib.h>

#include "engine_workload.h"

static int keep(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f) return 0;
    const int written = fputs(text, f) >= 0;
    return fclose(f) == 0 && written;
}

int main(int argc, char **argv)
{
    static char text[FM_WORKLOAD_BYTES];
    const char *why = "";
    if (argc < 4 || argc % 2) {
        fprintf(stderr, "usage: %s MODEL TOKENIZER TRANSCRIPT [OPTION VALUE]...\n", argv[0]);
        return 2;
    }
    const fm_workload w = {.dir         = argv[1],
                           .tokenizer   = argv[2],
                           .max_running = "8",
                           .chunk       = "24",
                           .max_tokens  = "256",
                           .more        = (const char *const *)argv + 4};
    if (!fm_run_workload(&w, text, &why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    return !*text || keep(argv[3], text) ? 0 : 1;
}
