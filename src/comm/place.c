/* SPDX-License-Identifier: Apache-2.0 */
/* Where the launcher has put this process. */
#define _POSIX_C_SOURCE 200809L
#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "comm/world_internal.h"

/* The indices of the objects of a kind that touch `mine`: "0", "0,1", "-". */
static void list_objects(char *out, size_t bytes, hwloc_topology_t t, hwloc_obj_type_t kind,
                         hwloc_const_bitmap_t mine)
{
    hwloc_bitmap_t found = hwloc_bitmap_alloc();
    if (!found) return;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, kind, o));)
        if (o->cpuset && hwloc_bitmap_intersects(o->cpuset, mine))
            hwloc_bitmap_set(found, o->os_index);
    if (hwloc_bitmap_iszero(found))
        snprintf(out, bytes, "-");
    else
        hwloc_bitmap_list_snprintf(out, bytes, found);
    hwloc_bitmap_free(found);
}

static void describe(char *out, size_t bytes, hwloc_topology_t t, hwloc_const_bitmap_t mine)
{
    char      socket[32] = "-", node[32] = "-", cpus[64] = "-";
    const int n     = hwloc_get_nbobjs_inside_cpuset_by_type(t, mine, HWLOC_OBJ_CORE);
    const int total = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
    list_objects(socket, sizeof socket, t, HWLOC_OBJ_PACKAGE, mine);
    list_objects(node, sizeof node, t, HWLOC_OBJ_NUMANODE, mine);
    hwloc_bitmap_list_snprintf(cpus, sizeof cpus, mine);
    snprintf(out, bytes, "%-8s %-8s %5d of %-5d %s", socket, node, n, total, cpus);
}

/* A key of the line of a file that begins with `start`. */
static uint64_t key_of_line(const char *file, const char *start)
{
    char  line[2048];
    FILE *f = fopen(file, "r");
    if (!f) return 0;
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, start, strlen(start))) {
            fclose(f);
            return fm_rng_key(line, 0);
        }
    fclose(f);
    return 0;
}

void fm__seat_find(fm__seat *mine)
{
    *mine = (fm__seat){.boot = key_of_line("/proc/sys/kernel/random/boot_id", ""),
                       .cpus = key_of_line("/proc/self/status", "Cpus_allowed:")};
    if (gethostname(mine->host, sizeof mine->host - 1) || !mine->host[0])
        strcpy(mine->host, "unknown");
}

void fm__place_text(char *out, size_t bytes)
{
    hwloc_topology_t t;
    snprintf(out, bytes, "unknown");
    if (hwloc_topology_init(&t) < 0) return;
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    if (mine && hwloc_topology_load(t) == 0 &&
        hwloc_get_cpubind(t, mine, HWLOC_CPUBIND_PROCESS) == 0)
        describe(out, bytes, t, mine);
    hwloc_bitmap_free(mine);
    hwloc_topology_destroy(t);
}
