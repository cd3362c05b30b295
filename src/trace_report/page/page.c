/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/html.h"

/* The assembler reads the file: no generated array, no tool at build time. */
__asm__(".pushsection .rodata\n"
        ".globl fm_trace_page_html\n"
        ".hidden fm_trace_page_html\n"
        ".type fm_trace_page_html, %object\n"
        "fm_trace_page_html:\n"
        ".incbin \"" FM_TRACE_PAGE_FILE "\"\n"
        ".Ltrace_page_end:\n"
        ".size fm_trace_page_html, . - fm_trace_page_html\n"
        ".balign 8\n"
        ".globl fm_trace_page_html_len\n"
        ".hidden fm_trace_page_html_len\n"
        ".type fm_trace_page_html_len, %object\n"
        ".size fm_trace_page_html_len, 8\n"
        "fm_trace_page_html_len:\n"
        ".quad .Ltrace_page_end - fm_trace_page_html\n"
        ".popsection\n");

_Static_assert(sizeof(size_t) == 8, "the length above is 8 bytes");
