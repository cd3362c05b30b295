/* SPDX-License-Identifier: Apache-2.0 */
/* Writes log lines to stderr by a thread of its own with two buffers of fixed size, so that callers
 * never block (log.h has the contract). */
#ifndef FM_BASE_LOG_WRITER_H
#define FM_BASE_LOG_WRITER_H

#include <stddef.h>

void fm__log_write(const char *lines, size_t len);

#endif
