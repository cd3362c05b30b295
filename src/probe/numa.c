/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/numa.h"

#include <hwloc.h>
#include <omp.h>
#include <stdlib.h>

#include "device/host_threads.h"

enum { MOST_NODES = 16 };

struct fm_numa {
    hwloc_topology_t topology;
    hwloc_cpuset_t   allowed;
    int              n;
    hwloc_obj_t      node[MOST_NODES]; /* of the topology */
};

static void find_nodes(fm_numa *t)
{
    hwloc_obj_t o = NULL;
    while (t->n < MOST_NODES &&
           (o = hwloc_get_next_obj_by_type(t->topology, HWLOC_OBJ_NUMANODE, o)) != NULL)
        if (hwloc_bitmap_intersects(o->cpuset, t->allowed)) t->node[t->n++] = o;
}

static fm_status load(fm_numa *t)
{
    if (hwloc_topology_init(&t->topology) < 0) return fm_fail(FM_E_OOM, "topology");
    if (hwloc_topology_load(t->topology) < 0)
        return fm_fail(FM_E_NOSUP, "hwloc cannot read this machine's topology");
    const hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(t->topology);
    if (!(t->allowed = hwloc_bitmap_alloc())) return fm_fail(FM_E_OOM, "topology");
    if (hwloc_get_cpubind(t->topology, t->allowed, HWLOC_CPUBIND_PROCESS) < 0)
        hwloc_bitmap_copy(t->allowed, all);
    hwloc_bitmap_and(t->allowed, t->allowed, all);
    find_nodes(t);
    return FM_OK;
}

fm_status fm_numa_open(fm_numa **out)
{
    fm_numa *t = calloc(1, sizeof *t);
    if (!t) return fm_fail(FM_E_OOM, "topology");
    const fm_status rc = load(t);
    if (rc != FM_OK)
        fm_numa_close(t);
    else
        *out = t;
    return rc;
}

void fm_numa_close(fm_numa *t)
{
    if (!t) return;
    hwloc_bitmap_free(t->allowed);
    if (t->topology) hwloc_topology_destroy(t->topology);
    free(t);
}

int fm_numa_count(const fm_numa *t) { return t->n > 0 ? t->n : 1; }

int fm_numa_id(const fm_numa *t, int i) { return i < t->n ? (int)t->node[i]->os_index : 0; }

/* The CPUs of the node this process may use; the caller frees the set. */
static hwloc_cpuset_t cpus_of(const fm_numa *t, int i)
{
    hwloc_cpuset_t set = hwloc_bitmap_dup(t->allowed);
    if (set && i < t->n) hwloc_bitmap_and(set, set, t->node[i]->cpuset);
    return set;
}

int fm_numa_cores(const fm_numa *t, int i)
{
    hwloc_cpuset_t set = cpus_of(t, i);
    if (!set) return 1;
    const int n = hwloc_get_nbobjs_inside_cpuset_by_type(t->topology, set, HWLOC_OBJ_CORE);
    const int m = n > 0 ? n : hwloc_bitmap_weight(set); /* a core of which one thread is allowed */
    hwloc_bitmap_free(set);
    return m > 0 ? m : 1;
}

size_t fm_numa_cache(const fm_numa *t)
{
    size_t most = 0;
    for (int kind = HWLOC_OBJ_L1CACHE; kind <= HWLOC_OBJ_L5CACHE; kind++) {
        const hwloc_obj_t o = hwloc_get_next_obj_by_type(t->topology, (hwloc_obj_type_t)kind, NULL);
        if (o && o->attr->cache.size > most) most = (size_t)o->attr->cache.size;
    }
    return most;
}

void fm_numa_place(const fm_numa *t, int i, void *p, size_t bytes)
{
    if (i < t->n)
        hwloc_set_area_membind(t->topology, p, bytes, t->node[i]->nodeset, HWLOC_MEMBIND_BIND,
                               HWLOC_MEMBIND_BYNODESET);
}

/* The calling thread goes to the k-th core of the set, or its k-th CPU. */
static void go_to(const fm_numa *t, hwloc_const_cpuset_t set, int k)
{
    hwloc_obj_t o =
        hwloc_get_obj_inside_cpuset_by_type(t->topology, set, HWLOC_OBJ_CORE, (unsigned)k);
    if (!o) o = hwloc_get_obj_inside_cpuset_by_type(t->topology, set, HWLOC_OBJ_PU, (unsigned)k);
    hwloc_cpuset_t one = o ? hwloc_bitmap_dup(o->cpuset) : NULL;
    if (!one) return;
    hwloc_bitmap_singlify(one);
    hwloc_set_cpubind(t->topology, one, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(one);
}

void fm_numa_gather(const fm_numa *t, int i)
{
    hwloc_cpuset_t set = cpus_of(t, i);
    if (!set) return;
#pragma omp parallel num_threads(fm_numa_cores(t, i))
    go_to(t, set, omp_get_thread_num());
    hwloc_bitmap_free(set);
}

void fm_numa_release(const fm_numa *t)
{
    fm_threads_dismiss();
    hwloc_set_cpubind(t->topology, t->allowed, HWLOC_CPUBIND_THREAD);
}
