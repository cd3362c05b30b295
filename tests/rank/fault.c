/* SPDX-License-Identifier: Apache-2.0 */
/* fault HOW VICTIM: ranks compute in step until one of them fails.
 *
 *     kill stop segv term   a signal to itself
 *     exit                  leaves without a word
 *     abort                 gives up and says why
 *     close                 closes the world while the others are in a call
 *     absent                lives, but never comes to the call the others wait in
 *     none                  all is well */
#define _DEFAULT_SOURCE
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "rank.h"

enum { FATAL_STEP = 300, STEPS = 600 };

static void fail(fm_world *w, const char *how)
{
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "stop")) raise(SIGSTOP);
    if (!strcmp(how, "segv")) raise(SIGSEGV);
    if (!strcmp(how, "term")) raise(SIGTERM), sleep(60);
    if (!strcmp(how, "exit")) exit(0);
    if (!strcmp(how, "abort")) fm_world_abort(w, "out of %s", "luck");
    if (!strcmp(how, "close")) fm_world_close(w);
    if (!strcmp(how, "absent")) {
        fm_world_doing(w, "sleeping at step %d", FATAL_STEP);
        sleep(60);
    }
}

int main(int argc, char **argv)
{
    fm_world    *w      = rank_open();
    fm_comm     *c      = fm_world_comm(w);
    const char  *how    = argc > 1 ? argv[1] : "none";
    const int    victim = argc > 2 ? atoi(argv[2]) : -1;
    static float x[20000];
    for (int step = 0; step < STEPS; step++) {
        fm_world_doing(w, "step %d", step);
        if (step == FATAL_STEP && c->rank == victim) {
            usleep(250000); /* a moment, so that the last word is no older than this */
            fail(w, how);
        }
        if (fm_all_reduce_f32(c, x, step % 2 ? 100 : 20000) != FM_OK)
            fm_world_abort(w, "%s", fm_why());
    }
    fm_world_close(w);
    return 0;
}
