/* SPDX-License-Identifier: Apache-2.0 */
/* A golden test that is run once more at the instruction set FM_ISA names: whether that run would
 * show anything on this machine. */
#ifndef FM_TESTS_GOLDEN_LEVEL_H
#define FM_TESTS_GOLDEN_LEVEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"

enum { SKIPPED = 77 }; /* CMakeLists.txt: a test that ends with it was skipped */

/* Says why, if the machine lacks the level or takes it without being asked: then `test`, which runs
 * without FM_ISA, has tested it. */
static int runs_in_vain(const char *test)
{
    const char  *asked = getenv("FM_ISA");
    const fm_isa isa   = fm_cpu_isa();
    if (!asked) return 0;
    if (strcmp(asked, fm_isa_name(isa)) != 0) {
        printf("this machine has no %s\n", asked);
        return 1;
    }
    if (isa == FM_ISA_AMX || !fm_cpu_detects(isa + 1)) {
        printf("%s is this machine's own level: %s tests it\n", asked, test);
        return 1;
    }
    return 0;
}

#endif
