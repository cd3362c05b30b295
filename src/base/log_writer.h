/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way to stderr (log.h says what is promised). */
#ifndef FM_BASE_LOG_WRITER_H
#define FM_BASE_LOG_WRITER_H

#include <stddef.h>

void fm__log_write(const char *lines, size_t len);

#endif
