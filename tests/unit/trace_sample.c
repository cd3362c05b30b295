/* SPDX-License-Identifier: Apache-2.0 */
/* trace_sample FILE RANKS STEPS TASKS: writes the traces of a job as large as told. */
#include <stdio.h>
#include <stdlib.h>

#include "trace_writer.h"

int main(int argc, char **argv)
{
    if (argc != 5) return 2;
    const written_job w = {.stem         = argv[1],
                           .n_rank       = atoi(argv[2]),
                           .n_step       = atoi(argv[3]),
                           .n_task       = atoi(argv[4]),
                           .ring_bytes   = 64 << 20,
                           .slow_rank    = 1,
                           .slow_attend  = 1.3,
                           .attend_us    = 900,
                           .experts_us   = 2500,
                           .move_us      = 150,
                           .plan_us      = 20,
                           .gap_us       = 30,
                           .prompt_every = 100,
                           .prompt_us    = 60000};
    write_job(&w);
    return 0;
}
