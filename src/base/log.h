/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines for whoever runs the process: level, room, key=value, one line on
 * stderr.  Filtered by FM_LOG, e.g. FM_LOG=info,kv=debug; default warn.
 * Results are printed by app/ alone, never logged. */
#ifndef FM_BASE_LOG_H
#define FM_BASE_LOG_H

typedef enum { FM_LOG_ERROR, FM_LOG_WARN, FM_LOG_INFO, FM_LOG_DEBUG } fm_log_level;

void fm_log(fm_log_level level, const char *room, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define FM_WARN(room, ...)  fm_log(FM_LOG_WARN, room, __VA_ARGS__)
#define FM_INFO(room, ...)  fm_log(FM_LOG_INFO, room, __VA_ARGS__)
#define FM_DEBUG_LOG(room, ...) fm_log(FM_LOG_DEBUG, room, __VA_ARGS__)

#endif
