/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program.  Each returns the exit status: 0 all is well,
 * 1 the run or its verdict failed, 2 bad input, a plan that does not fit or a
 * file that cannot be written, 4 a measurement ended early and what there was
 * of it is reported.  (3 is a job that lost a rank: comm/world.h.) */
#ifndef FM_APP_COMMANDS_H
#define FM_APP_COMMANDS_H

#include "fathom/status.h"

enum { FM_EXIT_OK, FM_EXIT_FAILED, FM_EXIT_INPUT, FM_EXIT_PARTIAL = 4 };

int fm_cmd_bench(int argc, char **argv);
int fm_cmd_cache(int argc, char **argv);
int fm_cmd_convert(int argc, char **argv);
int fm_cmd_doctor(int argc, char **argv);
int fm_cmd_eval(int argc, char **argv);
int fm_cmd_route(int argc, char **argv);
int fm_cmd_run(int argc, char **argv);
int fm_cmd_ablate(int argc, char **argv);
int fm_cmd_plan(int argc, char **argv);
int fm_cmd_tune(int argc, char **argv);
int fm_cmd_scf(int argc, char **argv);
int fm_cmd_serve(int argc, char **argv);
int fm_cmd_trace(int argc, char **argv);
int fm_cmd_verify(int argc, char **argv);

/* "fathom bench: <fm_why()>" on stderr; the exit status that goes with it. */
int fm_complain(const char *command, fm_status why);

void fm_print_version(void);

#endif
