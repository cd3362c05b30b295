/* SPDX-License-Identifier: Apache-2.0 */
/* How much of this process's CPUs others take: programs, the kernel for them, and other guests of
 * the host (steal time).  A measurement meanwhile is one of a disturbed machine. */
#ifndef FM_PROBE_OTHERS_H
#define FM_PROBE_OTHERS_H

typedef struct {
    double began, busy, own; /* seconds; busy < 0: not known */
} fm_others;

/* root is put before /proc: "", or a directory of a test. */
void fm_others_begin(fm_others *o, const char *root);

/* Since then, of the time of the CPUs that this process may use: 0 to 1; negative: not known. */
double fm_others_share(const fm_others *o, const char *root);

#endif
