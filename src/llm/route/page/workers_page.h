/* SPDX-License-Identifier: Apache-2.0 */
/* The page at "/router": workers, their load and hit rates, live.  One HTML file, carried in
 * the program.  Not NUL-terminated. */
#ifndef FM_LLM_ROUTE_PAGE_WORKERS_PAGE_H
#define FM_LLM_ROUTE_PAGE_WORKERS_PAGE_H

#include <stddef.h>

extern const unsigned char fm_workers_html[];
extern const size_t        fm_workers_html_len;

#endif
