/* SPDX-License-Identifier: Apache-2.0 */
/* What the control groups of this process leave it: memory and CPU time.
 *
 *     /proc/self/cgroup     4:memory:/job/step    its group in each hierarchy
 *     /proc/self/mountinfo  /sys/fs/cgroup/...    where the hierarchy lies
 *
 *     <mount>/job/step, <mount>/job, <mount>      each may have limits
 *
 * Version 1 and version 2 of groups are read, also side by side.  Where groups
 * are a namespace of their own, as in a container, the mount is the own group. */
#ifndef FM_DEVICE_HOST_GROUP_H
#define FM_DEVICE_HOST_GROUP_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t memory;      /* bytes, the tightest limit; SIZE_MAX: none */
    size_t memory_left; /* bytes until a group is at its limit, its file cache given back */
    char   nearest[256]; /* folder of the group that is nearest to its limit; "": none has one */
    int    cpus;        /* CPUs the quota keeps busy, rounded up; 0: no quota */
    double quota;       /* the same, not rounded */
    int64_t n_stopped;  /* times a quota stopped the groups so far; -1: no group counts it */
} fm_host_group;

/* `root` stands before /proc and /sys: "" is this system.  What cannot be read
 * limits nothing. */
fm_host_group fm_host_group_read(const char *root);

#endif
