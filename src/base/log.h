/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines for the operator of the process: level, room, key=value, one line on
 * stderr.  Filtered by FM_LOG, e.g. FM_LOG=info,kv=debug; default warn.
 * Results are printed by app/ alone, never logged. */
#ifndef FM_BASE_LOG_H
#define FM_BASE_LOG_H

#include <stdint.h>

typedef enum { FM_LOG_ERROR, FM_LOG_WARN, FM_LOG_INFO, FM_LOG_DEBUG } fm_log_level;

void fm_log(fm_log_level level, const char *room, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define FM_WARN(room, ...)  fm_log(FM_LOG_WARN, room, __VA_ARGS__)
#define FM_INFO(room, ...)  fm_log(FM_LOG_INFO, room, __VA_ARGS__)
#define FM_DEBUG_LOG(room, ...) fm_log(FM_LOG_DEBUG, room, __VA_ARGS__)

/* Complete lines, each ended by a newline, written to stderr without level or filter. */
void fm_log_lines(const char *lines);

/* From here on lines are handed to a thread that writes them, and no caller ever
 * waits for the reader of stderr: a line that finds 128 KiB unwritten is dropped and
 * counted, and when the reader goes on, a line reports how many were dropped.  If no
 * thread could be started, the caller writes its lines itself, as before. */
void fm_log_start_writer(void);

/* Waits up to a second for what is unwritten.  After a reader that took nothing
 * in that time, later lines are dropped; otherwise callers write again. */
void fm_log_stop_writer(void);

int64_t fm_log_n_dropped(void); /* lines, since the start */

#endif
