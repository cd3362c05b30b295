/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/basis/library_data.h"

/* The assembler reads the file: no generated array, no tool at build time. */
__asm__(".pushsection .rodata\n"
        ".globl fm__library_data\n"
        ".hidden fm__library_data\n"
        ".type fm__library_data, %object\n"
        "fm__library_data:\n"
        ".incbin \"" FM_BASIS_FILE "\"\n"
        ".byte 0\n"
        ".size fm__library_data, . - fm__library_data\n"
        ".popsection\n");
