/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/page/workers_page.h"

/* The assembler reads the file, as it does for the page of the server. */
__asm__(".pushsection .rodata\n"
        ".globl fm_workers_html\n"
        ".hidden fm_workers_html\n"
        ".type fm_workers_html, %object\n"
        "fm_workers_html:\n"
        ".incbin \"" FM_PAGE_FILE "\"\n"
        ".Lworkers_end:\n"
        ".size fm_workers_html, . - fm_workers_html\n"
        ".balign 8\n"
        ".globl fm_workers_html_len\n"
        ".hidden fm_workers_html_len\n"
        ".type fm_workers_html_len, %object\n"
        ".size fm_workers_html_len, 8\n"
        "fm_workers_html_len:\n"
        ".quad .Lworkers_end - fm_workers_html\n"
        ".popsection\n");

_Static_assert(sizeof(size_t) == 8, "the length above is 8 bytes");
