/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom run`: its options, one streamed answer, and a conversation: a chat
 * whose earlier turns are part of every prompt. */
#ifndef FM_APP_TALK_H
#define FM_APP_TALK_H

#include "base/knobs.h"
#include "base/str.h"
#include "llm/engine.h"
#include "llm/text/chat.h"

typedef struct {
    char   *system, *stop;
    double  temperature, top_p, min_p;
    double  repetition_penalty, frequency_penalty, presence_penalty;
    int64_t top_k, min_new_tokens, max_new_tokens, seed;
    int     raw, thinking, ignore_eos, show_special;
} fm_talk_options;

extern const fm_knob fm_talk_knobs[];
extern const int     fm_n_talk_knob;

typedef struct {
    char *role, *content; /* owned */
} fm_talk_turn;

typedef struct {
    fm_engine             *engine; /* borrowed */
    const fm_talk_options *opt;    /* borrowed */
    char                 **stop;   /* [n_stop] owned */
    int                    n_stop;
    fm_tokenizer_scratch  *scratch;
    fm_chat_style          style;
    fm_talk_turn          *turn; /* [n_turn] owned */
    int                    n_turn;
} fm_talk;

/* FM_E_ARG when the engine has no tokenizer. */
fm_status fm_talk_init(fm_talk *t, fm_engine *e, const fm_talk_options *opt, char **stop,
                       int n_stop);
void      fm_talk_fini(fm_talk *t);

void fm_talk_reset(fm_talk *t, const char *system); /* forget all turns; system may be NULL */

/* Answers on stdout as the text comes.  FM_E_CANCELLED: stopped by Ctrl-C.
 * fm_talk_say keeps question and answer for the next turn (a question that
 * cannot be answered is forgotten); fm_talk_raw continues plain text. */
fm_status fm_talk_say(fm_talk *t, const char *text);
fm_status fm_talk_raw(fm_talk *t, const char *text, size_t len);

void fm_talk_catch_interrupt(void); /* from here Ctrl-C ends answers, not the program */

fm_status fm_talk_interactive(fm_talk *t); /* until /quit or end of input */

#endif
