/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a test is to do the same checks on less input: tests/run.sh sets FM_TEST_BRIEF for
 * programs that sanitizers make slow. */
#ifndef FM_TESTS_BRIEF_H
#define FM_TESTS_BRIEF_H

#include <stdlib.h>

static inline int is_brief(void) { return getenv("FM_TEST_BRIEF") != NULL; }

#endif
