/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "early_end.h"

#include <signal.h>
#include <stddef.h>

#include "base/clock.h"

static volatile sig_atomic_t noted;
static double                deadline; /* 0: none */

static void on_signal(int number) { noted = number; }

void fm_early_end_limit(double seconds) { deadline = seconds > 0 ? fm_now() + seconds : 0; }

void fm_early_end_catch(void)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&act.sa_mask);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGINT, &act, NULL);
}

void fm_early_end_ignore(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
}

const char *fm_early_end_why(void)
{
    if (noted) return noted == SIGINT ? "SIGINT" : "SIGTERM";
    return deadline > 0 && fm_now() >= deadline ? "time limit" : NULL;
}
