/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions this process may use: bundles in order, detected once
 * together with the operating system's permission, lowered by FM_ISA=avx2. */
#ifndef FM_BASE_CPU_H
#define FM_BASE_CPU_H

typedef enum {
    FM_ISA_REF,    /* plain C */
    FM_ISA_AVX2,   /* + fma, f16c */
    FM_ISA_AVX512, /* f bw vl dq bf16 vnni */
    FM_ISA_AMX,    /* + tile, bf16, and vbmi, vbmi2, gfni, which every CPU with AMX has */
} fm_isa;

fm_isa      fm_cpu_isa(void);            /* the best this process may use */
const char *fm_isa_name(fm_isa isa);     /* "ref", "avx2", "avx512", "amx" */
int         fm_cpu_detects(fm_isa isa);  /* whatever FM_ISA says */
int         fm_cpu_has_vbmi(void);       /* and VBMI2: what may join AVX512 */

#endif
