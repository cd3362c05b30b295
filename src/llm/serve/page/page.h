/* SPDX-License-Identifier: Apache-2.0 */
/* The page at "/": chat and dashboard in one HTML file, carried in the program.
 * Not NUL-terminated. */
#ifndef FM_LLM_SERVE_PAGE_PAGE_H
#define FM_LLM_SERVE_PAGE_PAGE_H

#include <stddef.h>

extern const unsigned char fm_page_html[];
extern const size_t        fm_page_html_len;

#endif
