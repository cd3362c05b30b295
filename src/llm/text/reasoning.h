/* SPDX-License-Identifier: Apache-2.0 */
/* Splits an answer into reasoning and content at the tags <think> and </think>.  How the text is
 * cut into pushes changes nothing: what may be the beginning of a tag is held back until more
 * text decides.  Nothing is trimmed. */
#ifndef FM_LLM_TEXT_REASONING_H
#define FM_LLM_TEXT_REASONING_H

#include "base/str.h"

typedef enum {
    FM_REASONING_OFF,   /* all of it is content */
    FM_REASONING_IF_TAGGED, /* begins with <think> or has none */
    FM_REASONING_OPEN,  /* the prompt ended inside: reasoning until </think>; a leading
                           <think> is dropped */
} fm_reasoning_mode;

typedef struct {
    fm_reasoning_mode mode;
    const char       *also_ends; /* another mark that ends it, and stays; borrowed, or NULL */
    enum { FM_REASONING_START, FM_REASONING_INSIDE, FM_REASONING_AFTER } at;
    fm_str            held;
} fm_reasoning;

void fm_reasoning_init(fm_reasoning *r, fm_reasoning_mode mode, const char *also_ends);
void fm_reasoning_fini(fm_reasoning *r);

/* Appends to *thought and *said. */
void fm_reasoning_push(fm_reasoning *r, const char *text, size_t len, fm_str *thought,
                       fm_str *said);
void fm_reasoning_end(fm_reasoning *r, fm_str *thought, fm_str *said);

#endif
