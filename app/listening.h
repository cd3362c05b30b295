/* SPDX-License-Identifier: Apache-2.0 */
/* What commands that serve HTTP have in common: hooks that write lines to standard error through
 * the log's thread, and descriptors for connections. */
#ifndef FM_APP_LISTENING_H
#define FM_APP_LISTENING_H

/* As many descriptors as the system lets us have: a connection is one, a routed stream two. */
void fm_listening_raise_file_limit(void);

/* Hooks of fm_serve and fm_route; `command`, their ctx, is the command's name. */
void fm_listening_ready(void *command, const char *url);
void fm_listening_lines(void *command, const char *lines);

#endif
