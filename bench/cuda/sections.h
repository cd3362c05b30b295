/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of bench_cuda.  Each is called in a process of its own, after
 * stand_open(), and returns when its work or its time is over. */
#ifndef FM_BENCH_CUDA_SECTIONS_H
#define FM_BENCH_CUDA_SECTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

void section_device(void);
void section_ceilings(void);
void section_launches(void);
void section_linear(void);
void section_e4m3(void);
void section_experts(void);
void section_attention(void);
void section_rows(void);
void section_v2_lite(void);
void section_r1_bf16(void);
void section_r1_fp8(void);

#ifdef __cplusplus
}
#endif

#endif
