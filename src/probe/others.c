/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "probe/others.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

static double of_usage(int who)
{
    struct rusage u;
    if (getrusage(who, &u) != 0) return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double own_seconds(void) { return of_usage(RUSAGE_SELF) + of_usage(RUSAGE_CHILDREN); }

/* "cpu3 user nice system idle iowait irq softirq steal": ticks in which it was not idle. */
static int read_cpu(const char *line, int *cpu, double *ticks)
{
    double user, nice, system, irq, soft, steal;
    if (sscanf(line, "cpu%d %lf %lf %lf %*f %*f %lf %lf %lf", cpu, &user, &nice, &system, &irq,
               &soft, &steal) != 7)
        return 0;
    *ticks = user + nice + system + irq + soft + steal;
    return 1;
}

static double busy_seconds(const char *root)
{
    char      line[512];
    cpu_set_t mine;
    double    sum = 0, ticks;
    int       cpu, n = 0;
    snprintf(line, sizeof line, "%s/proc/stat", root);
    FILE *f = fopen(line, "r");
    if (!f) return -1;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0)
        while (fgets(line, sizeof line, f))
            if (read_cpu(line, &cpu, &ticks) && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &mine))
                sum += ticks, n++;
    fclose(f);
    return n ? sum / (double)sysconf(_SC_CLK_TCK) : -1;
}

static double n_cpu(void)
{
    cpu_set_t mine;
    return sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
}

void fm_others_begin(fm_others *o, const char *root)
{
    *o = (fm_others){.began = fm_now(), .busy = busy_seconds(root), .own = own_seconds()};
}

double fm_others_share(const fm_others *o, const char *root)
{
    const double busy = busy_seconds(root), wall = fm_now() - o->began;
    if (o->busy < 0 || busy < 0 || !(wall > 0)) return -1;
    const double share = (busy - o->busy - (own_seconds() - o->own)) / (wall * n_cpu());
    return share < 0 ? 0 : share > 1 ? 1 : share;
}
