/* SPDX-License-Identifier: Apache-2.0 */
/* Files that reports are written to. */
#ifndef FM_BENCH_OUTPUT_H
#define FM_BENCH_OUTPUT_H

#include <jansson.h>

#include "base/status.h"
#include "base/str.h"

void      fm_today(char out[16]);
fm_status fm_write_text(const char *path, const fm_str *text);
fm_status fm_write_json(const char *path, json_t *all); /* takes `all` */

#endif
