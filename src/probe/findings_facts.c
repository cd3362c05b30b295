/* SPDX-License-Identifier: Apache-2.0 */
/* What systems report about themselves: errors, limits, throttling; and what of it explains a
 * slow host. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe/findings_internal.h"

enum { MANY_CORRECTED = 1000 };
#define MUCH_STEAL 0.03
#define RUNNING_ENOUGH 0.92
#define MUCH_LOAD 0.25 /* of the CPUs, before the checkup began */

static double steal_share(const fm_facts *f)
{
    return f->cpu_s > 0 && f->steal_s > 0 ? f->steal_s / f->cpu_s : 0;
}

int fm__was_running(const fm_checkup_rank *r) { return r->on_cpu >= RUNNING_ENOUGH; }

static int is_short_of_quota(const fm_checkup_rank *r)
{
    return r->facts.quota > 0 && r->facts.quota < r->rates.n_thread;
}

/* --- advice -------------------------------------------------------------------- */

/* The most threads, and the fastest clock, that another rank of the same CPU has. */
static int most_threads(const fm_checkup *c, int rank)
{
    int most = 0;
    for (int i = 0; i < c->n_rank; i++)
        if (!strcmp(c->rank[i].rates.cpu, c->rank[rank].rates.cpu) &&
            c->rank[i].rates.n_thread > most)
            most = c->rank[i].rates.n_thread;
    return most;
}

static int explain_by_limits(char *out, size_t size, const fm_checkup *c, int rank)
{
    const fm_checkup_rank *r    = &c->rank[rank];
    const int              most = most_threads(c, rank);
    if (is_short_of_quota(r) || (r->facts.quota > 0 && r->facts.quota_stops > 0))
        snprintf(
            out, size,
            "a control group allows it %.3g CPUs for %d threads and stopped it %lld times: ask "
            "for as many CPUs as threads",
            r->facts.quota, r->rates.n_thread, (long long)fmax(0, (double)r->facts.quota_stops));
    else if (r->rates.n_thread < most)
        snprintf(out, size,
                 "it has %d threads where others have %d: check its binding (mpirun "
                 "--report-bindings) and the cores it was given",
                 r->rates.n_thread, most);
    else
        return 0;
    return 1;
}

static int explain_by_others(char *out, size_t size, const fm_checkup_rank *r)
{
    if (steal_share(&r->facts) > MUCH_STEAL)
        snprintf(
            out, size,
            "the hypervisor gave %.0f %% of its CPU time to other virtual machines: move it to "
            "a less busy machine",
            100 * steal_share(&r->facts));
    else if (!fm__was_running(r))
        snprintf(out, size,
                 "its threads were running %.0f %% of the time: another process uses its cores, or "
                 "several ranks are bound to the same ones (top, mpirun --report-bindings)",
                 100 * r->on_cpu);
    else if (r->facts.throttled > 0)
        snprintf(out, size,
                 "its cores were slowed down for heat %lld times: check cooling and power limits",
                 (long long)r->facts.throttled);
    else
        return 0;
    return 1;
}

void fm__advise_host(char *out, size_t size, const fm_checkup *c, int rank, int is_memory)
{
    const fm_checkup_rank *r = &c->rank[rank];
    if (explain_by_limits(out, size, c, rank) || explain_by_others(out, size, r)) return;
    if (is_memory)
        snprintf(out, size,
                 "its threads had the cores to themselves: look for processes that use its memory, "
                 "for missing or slow memory modules (dmidecode -t memory) and for memory settings "
                 "of the BIOS");
    else
        snprintf(out, size,
                 "its threads had the cores to themselves: compare clocks, power limits and BIOS "
                 "settings with a good host (cpupower, turbostat)%s%s",
                 *r->facts.governor ? "; its governor is " : "", r->facts.governor);
}

void fm__advise_gpu(char *out, size_t size, const fm_checkup *c, int rank)
{
    const fm_gpu_facts *g = &c->rank[rank].gpu;
    char                why[160];
    fm_gpu_throttle_words(g->throttled, why, sizeof why);
    if (*why)
        snprintf(out, size, "its clock is %d of %d MHz because of %s (%d W, %d degrees)", g->mhz,
                 g->mhz_most, why, g->watt, g->celsius);
    else if (g->pcie_width > 0 && g->pcie_width < g->pcie_width_most)
        snprintf(out, size, "it has %d of %d PCIe lanes: reseat it, or have it replaced",
                 g->pcie_width, g->pcie_width_most);
    else
        snprintf(out, size,
                 "look for other processes on it (nvidia-smi) and for errors of the "
                 "driver (dmesg, Xid)");
}

/* --- what is wrong by itself ------------------------------------------------------- */

static void look_at_errors(fm_findings *f, int host, int rank, const fm_facts *x)
{
    fm_finding *new;
    if (x->uncorrected > 0) {
        new = fm__finding_add(f, FM_FINDING_FAULT, host, rank,
                              "%lld uncorrected memory errors since it was started",
                              (long long)x->uncorrected);
        snprintf(new->todo, sizeof new->todo, "have a memory module replaced");
    }
    if (x->corrected > MANY_CORRECTED) {
        new = fm__finding_add(f, FM_FINDING_NOTE, host, rank,
                              "%lld corrected memory errors since it was started",
                              (long long)x->corrected);
        snprintf(new->todo, sizeof new->todo, "a memory module is wearing out; have it looked at");
    }
}

static void look_at_limits(fm_findings *f, int host, int rank, const fm_checkup_rank *r)
{
    fm_finding *new;
    if (is_short_of_quota(r)) {
        new = fm__finding_add(f, FM_FINDING_NOTE, host, rank,
                              "a control group allows %.3g CPUs for %d threads", r->facts.quota,
                              r->rates.n_thread);
        snprintf(new->todo, sizeof new->todo, "ask for as many CPUs as threads");
    }
    if (r->facts.throttled > 0)
        fm__finding_add(f, FM_FINDING_NOTE, host, rank,
                        "cores were slowed down for heat %lld times during the checkup",
                        (long long)r->facts.throttled);
    if (steal_share(&r->facts) > MUCH_STEAL)
        fm__finding_add(f, FM_FINDING_NOTE, host, rank,
                        "the hypervisor took %.0f %% of the CPU time",
                        100 * steal_share(&r->facts));
    if (!strcmp(r->facts.huge_pages, "never")) {
        new = fm__finding_add(f, FM_FINDING_NOTE, host, rank, "huge pages are switched off");
        snprintf(new->todo, sizeof new->todo,
                 "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    }
    if (!strcmp(r->facts.governor, "powersave"))
        fm__finding_add(f, FM_FINDING_NOTE, host, rank,
                        "the clock's governor is powersave: clocks may rise late");
}

static void look_at_load(fm_findings *f, int host, int rank, const fm_checkup_rank *r)
{
    const fm_facts *x = &r->facts;
    if (x->load <= MUCH_LOAD * x->n_cpu || x->n_cpu < 1) return;
    fm_finding *new = fm__finding_add(f, FM_FINDING_NOTE, host, rank,
                                      "%.1f processes were running on its %d CPUs before the "
                                      "checkup",
                                      x->load, x->n_cpu);
    snprintf(new->todo, sizeof new->todo, "another process uses it; numbers may be low");
}

static void look_at_gpu(fm_findings *f, int host, int rank, const fm_checkup_rank *r)
{
    const fm_gpu_facts *g    = &r->gpu;
    const int           hard = FM_GPU_HARDWARE_HEAT | FM_GPU_POWER_BRAKE | FM_GPU_THERMAL;
    char                why[160];
    fm_finding *new;
    if (g->uncorrected > 0) {
        new = fm__finding_add(f, FM_FINDING_FAULT, host, rank,
                              "its GPU had %lld uncorrected memory errors",
                              (long long)g->uncorrected);
        snprintf(new->todo, sizeof new->todo, "reset it (nvidia-smi -r) or have it replaced");
    }
    if (g->throttled > 0 && g->throttled & hard) {
        fm_gpu_throttle_words(g->throttled, why, sizeof why);
        new = fm__finding_add(f, FM_FINDING_FAULT, host, rank,
                              "its GPU is slowed down by %s (%d degrees)", why, g->celsius);
        snprintf(new->todo, sizeof new->todo, "check cooling and power supply");
    }
    if (g->pcie_width > 0 && g->pcie_width < g->pcie_width_most)
        fm__finding_add(f, FM_FINDING_NOTE, host, rank, "its GPU has %d of %d PCIe lanes",
                        g->pcie_width, g->pcie_width_most);
    if (g->n_link > 0 && g->n_link_active < g->n_link)
        fm__finding_add(f, FM_FINDING_NOTE, host, rank, "its GPU has %d of %d NVLinks active",
                        g->n_link_active, g->n_link);
    if (g->index >= 0 && *r->gpu_why)
        fm__finding_add(f, FM_FINDING_NOTE, host, rank, "its GPU was not measured: %s", r->gpu_why);
}

/* What concerns the machine is said once, for its first rank; limits and GPUs are each rank's. */
void fm__findings_facts(fm_findings *f, const fm_checkup *c)
{
    for (int i = 0; i < c->n_rank; i++) {
        const int              h = c->host_of[i];
        const fm_checkup_rank *r = &c->rank[i];
        if (c->host[h].first == i) {
            look_at_errors(f, h, -1, &r->facts);
            look_at_limits(f, h, -1, r);
            look_at_load(f, h, -1, r);
        } else if (is_short_of_quota(r)) {
            fm__finding_add(f, FM_FINDING_NOTE, h, i,
                            "a control group allows %.3g CPUs for %d threads", r->facts.quota,
                            r->rates.n_thread);
        }
        if (c->n_rank > 1 && !fm__was_running(r))
            fm__finding_add(
                f, FM_FINDING_NOTE, h, i,
                "other processes or a quota took CPU time during the checkup; links are "
                "not judged");
        look_at_gpu(f, h, i, r);
        if (*r->file_why)
            fm__finding_add(f, FM_FINDING_NOTE, h, i, "files were not read: %s", r->file_why);
    }
}
