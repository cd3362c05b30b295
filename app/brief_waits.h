/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_APP_BRIEF_WAITS_H
#define FM_APP_BRIEF_WAITS_H

/* For a program whose team of threads has to share few cores with others: lets
 * the team wait a moment only before it sleeps.  OpenMP is told so by its
 * environment alone, which it reads before main(): the program starts over,
 * the same process with main's `argv`.  Nothing happens where the user has
 * set how long to wait, or where starting over fails. */
void fm_wait_briefly(char **argv);

#endif
