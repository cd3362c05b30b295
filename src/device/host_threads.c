/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host_threads.h"

#include <hwloc.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/host_group.h"

enum { MOST_THREADS = 4096 };

struct fm_threads {
    hwloc_topology_t topology;
    hwloc_cpuset_t   allowed; /* where the process could run at the start */
    hwloc_cpuset_t   chosen;  /* CPUs of the places, empty: not bound */
    hwloc_nodeset_t  nodes;   /* of those */
    uint64_t         id; /* never used twice */
    int              n, pinned;
};

/* Teams belong to the thread that opens the parallel regions: which one this
 * thread's is pinned for, 0: none. */
static _Thread_local uint64_t pinned_for;
static _Thread_local int      is_dismissed; /* no team since fm_threads_dismiss */

static fm_status load_topology(fm_threads *t)
{
    if (hwloc_topology_init(&t->topology) < 0) return fm_fail(FM_E_OOM, "topology");
    t->allowed = hwloc_bitmap_alloc();
    t->chosen  = hwloc_bitmap_alloc();
    t->nodes   = hwloc_bitmap_alloc();
    if (!t->allowed || !t->chosen || !t->nodes) return fm_fail(FM_E_OOM, "topology");
    if (hwloc_topology_load(t->topology) < 0)
        return fm_fail(FM_E_NOSUP, "hwloc cannot read this machine's topology");
    const hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(t->topology);
    if (hwloc_get_cpubind(t->topology, t->allowed, HWLOC_CPUBIND_PROCESS) < 0)
        hwloc_bitmap_copy(t->allowed, all);
    hwloc_bitmap_and(t->allowed, t->allowed, all);
    return FM_OK;
}

/* The first allowed CPU of each core that has one. */
static void choose_cores(fm_threads *t)
{
    hwloc_obj_t core = NULL;
    while ((core = hwloc_get_next_obj_by_type(t->topology, HWLOC_OBJ_CORE, core)) != NULL)
        for (int cpu = hwloc_bitmap_first(core->cpuset); cpu >= 0;
             cpu     = hwloc_bitmap_next(core->cpuset, cpu))
            if (hwloc_bitmap_isset(t->allowed, (unsigned)cpu)) {
                hwloc_bitmap_set(t->chosen, (unsigned)cpu);
                break;
            }
    if (hwloc_bitmap_iszero(t->chosen)) hwloc_bitmap_copy(t->chosen, t->allowed);
}

/* Keeps of the chosen cores, in the order of the machine, the part's: at least
 * one, and none of another part's if there are enough. */
static void keep_part(fm_threads *t, fm_threads_part p)
{
    const int n     = hwloc_bitmap_weight(t->chosen);
    const int begin = (int)((long)n * p.index / p.n), end = (int)((long)n * (p.index + 1) / p.n);
    hwloc_bitmap_t kept = hwloc_bitmap_alloc();
    if (!kept) return; /* all of them, then: slower, not wrong */
    for (int i = begin; i < end || i == begin; i++) {
        const hwloc_obj_t pu =
            hwloc_get_obj_inside_cpuset_by_type(t->topology, t->chosen, HWLOC_OBJ_PU, (unsigned)i);
        if (pu) hwloc_bitmap_set(kept, pu->os_index);
    }
    hwloc_bitmap_copy(t->chosen, kept);
    hwloc_bitmap_free(kept);
}

/* A thread per core, but no more than the quota keeps busy: when it is used up,
 * all of them stop until the next period. */
static int default_count(int n_core, fm_threads_part p)
{
    const int most = n_core > 0 ? n_core : 1, own = p.quota > p.n ? p.quota / p.n : 1;
    if (!p.quota || own >= most) return most;
    FM_INFO("device", "threads=%d on %d cores, by the CPU quota of a control group", own, most);
    return own;
}

/* `bind` only to cores that the team fills and has to itself, and not against
 * OMP_PROC_BIND. */
static void settle_cores(fm_threads *t, int n_thread, int bind, fm_threads_part p)
{
    choose_cores(t);
    const int is_own = hwloc_bitmap_weight(t->chosen) >= p.n;
    if (p.n > 1) keep_part(t, p);
    const int n_core = hwloc_bitmap_weight(t->chosen);
    t->n             = n_thread ? n_thread : default_count(n_core, p);
    if (!bind || !is_own || t->n != n_core || omp_get_proc_bind() != omp_proc_bind_false)
        hwloc_bitmap_zero(t->chosen);
}

/* Digits, commas and dashes, and no number so long that a set up to it would
 * be large. */
static int is_list(const char *s)
{
    if (!*s || strlen(s) > 4096) return 0;
    for (size_t digits = 0; *s; s++) {
        const int digit = *s >= '0' && *s <= '9';
        digits          = digit ? digits + 1 : 0;
        if ((!digit && *s != ',' && *s != '-') || digits > 5) return 0;
    }
    return 1;
}

static fm_status settle_list(fm_threads *t, const char *list, int n_thread)
{
    if (!is_list(list) || hwloc_bitmap_list_sscanf(t->chosen, list) < 0 ||
        hwloc_bitmap_weight(t->chosen) < 1)
        return fm_fail(FM_E_ARG,
                       "--cpu-bind \"%.64s\" is neither auto, none nor a list like 0-7,16", list);
    if (!hwloc_bitmap_isincluded(t->chosen, t->allowed))
        return fm_fail(FM_E_ARG, "--cpu-bind %.64s names a CPU this process may not use", list);
    const int n_cpu = hwloc_bitmap_weight(t->chosen);
    t->n            = n_thread ? n_thread : n_cpu;
    if (t->n > n_cpu)
        return fm_fail(FM_E_ARG, "--cpu-bind %.64s has %d CPUs for %d threads", list, n_cpu, t->n);
    return FM_OK;
}

static fm_status settle(fm_threads *t, const char *how, int n_thread, fm_threads_part p)
{
    FM_TRY(load_topology(t));
    const int is_auto = !strcmp(how, "auto");
    if (is_auto || !strcmp(how, "none")) settle_cores(t, n_thread, is_auto, p);
    else FM_TRY(settle_list(t, how, n_thread));
    const hwloc_const_cpuset_t used = hwloc_bitmap_iszero(t->chosen) ? t->allowed : t->chosen;
    hwloc_cpuset_to_nodeset(t->topology, used, t->nodes);
    return FM_OK;
}

fm_status fm_threads_create(fm_threads **out, const char *how, int n_thread)
{
    return fm_threads_create_part(out, how, n_thread, 0, 1);
}

fm_status fm_threads_create_part(fm_threads **out, const char *how, int n_thread, int index, int n)
{
    const fm_threads_part p = {index, n, fm_host_group_read("").cpus};
    return fm_threads_create_within(out, how, n_thread, p);
}

fm_status fm_threads_create_within(fm_threads **out, const char *how, int n_thread,
                                   fm_threads_part p)
{
    FM_BUG_UNLESS(p.index >= 0 && p.index < p.n);
    if (n_thread < 0 || n_thread > MOST_THREADS)
        return fm_fail(FM_E_ARG, "a team of %d threads: 1 to %d are possible", n_thread,
                       MOST_THREADS);
    static atomic_uint_fast64_t last_id;
    fm_threads                 *t = calloc(1, sizeof *t);
    if (!t) return fm_fail(FM_E_OOM, "threads");
    t->id = atomic_fetch_add(&last_id, 1) + 1;
    const fm_status rc = settle(t, how, n_thread, p);
    if (rc != FM_OK) {
        fm_threads_destroy(t);
        return rc;
    }
    *out = t;
    return FM_OK;
}

int fm_threads_count(const fm_threads *t)
{
    return t->n;
}

int fm_threads_bound(const fm_threads *t)
{
    return !hwloc_bitmap_iszero(t->chosen);
}

int fm_threads_nodes(const fm_threads *t)
{
    const int n = hwloc_bitmap_weight(t->nodes);
    return n > 1 ? n : 1;
}

/* Places are in the order of the machine, which is not always that of the
 * system's numbers. */
int fm_threads_cpu(const fm_threads *t, int i)
{
    const hwloc_obj_t pu =
        hwloc_get_obj_inside_cpuset_by_type(t->topology, t->chosen, HWLOC_OBJ_PU, (unsigned)i);
    return pu && i < t->n ? (int)pu->os_index : -1;
}

static int go_to(const fm_threads *t, int cpu)
{
    hwloc_cpuset_t one = hwloc_bitmap_alloc();
    if (!one) return 0;
    hwloc_bitmap_only(one, (unsigned)cpu);
    const int done = hwloc_set_cpubind(t->topology, one, HWLOC_CPUBIND_THREAD) == 0;
    hwloc_bitmap_free(one);
    return done;
}

int fm_threads_pin(fm_threads *t)
{
    int in_place = 0;
    if (!fm_threads_bound(t)) return 0;
    if (pinned_for == t->id) return t->n;
#pragma omp parallel num_threads(t->n) reduction(+ : in_place)
    in_place += go_to(t, fm_threads_cpu(t, omp_get_thread_num()));
    t->pinned    = 1;
    is_dismissed = 0;
    if (in_place == t->n) pinned_for = t->id;
    return in_place;
}

void fm_threads_roam(const fm_threads *t)
{
    if (!fm_threads_bound(t)) return;
    pinned_for = 0;
    hwloc_set_cpubind(t->topology, t->allowed, HWLOC_CPUBIND_THREAD);
}

void fm_threads_dismiss(void)
{
    pinned_for   = 0;
    is_dismissed = 1;
    omp_pause_resource_all(omp_pause_hard); /* a soft pause keeps the threads of LLVM's runtime */
}

void fm_threads_spread(const fm_threads *t, void *p, size_t bytes)
{
    if (!t || !p || !bytes || fm_threads_nodes(t) < 2) return;
    hwloc_set_area_membind(t->topology, p, bytes, t->nodes, HWLOC_MEMBIND_INTERLEAVE,
                           HWLOC_MEMBIND_BYNODESET);
}

/* A team that was dismissed has no threads to unbind.  Making one for it is not only vain: LLVM's
 * runtime crashes when another thread has used and left it since the hard pause. */
void fm_threads_destroy(fm_threads *t)
{
    if (!t) return;
    if (t->pinned && is_dismissed) {
        fm_threads_roam(t);
    } else if (t->pinned) {
#pragma omp parallel num_threads(t->n)
        fm_threads_roam(t);
    }
    hwloc_bitmap_free(t->nodes);
    hwloc_bitmap_free(t->chosen);
    hwloc_bitmap_free(t->allowed);
    if (t->topology) hwloc_topology_destroy(t->topology);
    free(t);
}
