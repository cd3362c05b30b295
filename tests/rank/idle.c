/* SPDX-License-Identifier: Apache-2.0 */
/* A rank may wait for its next order far longer than a collective may take,
 * and uses next to no processor time meanwhile. */
#define _DEFAULT_SOURCE
#include <time.h>
#include <unistd.h>

#include "rank.h"

int main(void)
{
    fm_world        *w     = NULL;
    fm_world_options o     = {.comm_timeout = 0.5, .comm_silence = 5};
    int              order = 0;
    fm_comm_job      job;
    if (fm_world_open(&w, &o) != FM_OK) return 1;
    fm_comm *c = fm_world_comm(w);
    CHECK(w, fm_barrier(c) == FM_OK);
    const clock_t before = clock();
    if (c->rank == 0) usleep(2000000), order = 42;
    CHECK(w, fm_comm_start(c, &job, fm_call_broadcast(&order, sizeof order, 0)) == FM_OK);
    CHECK(w, fm_comm_wait_idle(&job) == FM_OK && order == 42);
    CHECK(w, (double)(clock() - before) / CLOCKS_PER_SEC < 0.6);
    fm_world_close(w);
    return 0;
}
