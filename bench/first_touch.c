/* SPDX-License-Identifier: Apache-2.0 */
/* What the first write to memory costs, and what is left of it behind fm_host_prefault.
 *
 *     bench_first_touch [MIB [THREADS]]      1024 1
 *
 * Each block is mapped anew.  The system may give pages that a program before this one had used,
 * which it only zeroes; in a virtual machine other pages have to be backed by the host first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/host.h"
#include "device/host_prefault.h"

enum { HUGE = 2 << 20 };

static void line(const char *what, double seconds, size_t bytes)
{
    printf("%-28s %8.2f GB/s %8.3f ms for 2 MiB\n", what, (double)bytes / seconds * 1e-9,
           seconds / ((double)bytes / HUGE) * 1e3);
}

static double written(char *p, size_t bytes)
{
    const double began = fm_now();
    memset(p, 1, bytes);
    return fm_now() - began;
}

int main(int argc, char **argv)
{
    const int    mib   = argc > 1 ? atoi(argv[1]) : 1024, n_thread = argc > 2 ? atoi(argv[2]) : 1;
    const size_t bytes = (size_t)mib << 20;
    char        *p[2];
    if (mib < 2 || n_thread < 1) return 2;
    for (int i = 0; i < 2; i++)
        if (fm_host_alloc((void **)&p[i], bytes, "memory to write") != FM_OK) return 1;
    line("first write", written(p[0], bytes), bytes);
    line("second write", written(p[0], bytes), bytes);
    const double began = fm_now();
    const size_t n     = fm_host_prefault(p[1], bytes, n_thread, 60);
    if (n) {
        line("prefault", fm_now() - began, n);
        line("first write behind it", written(p[1], n), n);
    } else {
        puts("the system cannot prefault, or has too little memory left");
    }
    for (int i = 0; i < 2; i++) fm_host_free(p[i], bytes);
    return 0;
}
