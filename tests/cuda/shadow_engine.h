/* SPDX-License-Identifier: Apache-2.0 */
/* A few prompts through an engine that runs CPU and GPU side by side. */
#ifndef FM_TESTS_CUDA_SHADOW_ENGINE_H
#define FM_TESTS_CUDA_SHADOW_ENGINE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Which of the GPU's weights is changed after loading. */
typedef enum {
    FM_CHANGE_NONE,
    FM_CHANGE_Q_UP,
    FM_CHANGE_EXPERT,
    FM_CHANGE_ROUTER,
    FM_CHANGE_HEAD,
    FM_CHANGE_BIAS, /* so that other experts are chosen */
    FM_NUDGE_BIAS,  /* so that others may be where scores nearly tie */
} fm_change;

typedef struct {
    const char *model, *json; /* a directory or a built-in shape, and overrides */
    const char *page_size;
    fm_change   change;
    const char *drafts; /* --speculative-algorithm; NULL: none */
} fm_shadow_asked;

typedef struct {
    char why[600];     /* empty: it went well */
    char report[4000]; /* and then this is the table */
} fm_shadow_heard;

void fm_ask_shadow(const fm_shadow_asked *how, fm_shadow_heard *out);

#ifdef __cplusplus
}
#endif

#endif
