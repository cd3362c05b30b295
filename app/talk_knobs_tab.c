/* SPDX-License-Identifier: Apache-2.0 */
#include "talk.h"

#define K(KIND, field, ...) FM_KNOB(fm_talk_options, KIND, field, __VA_ARGS__)

/* clang-format off */
const fm_knob fm_talk_knobs[] = {
    K(WORD, system, "system", NULL, 0, 0, "TEXT", "the system message"),
    K(FLAG, raw, "raw", NULL, 0, 0, NULL, "continue plain text, without the chat template"),
    K(FLAG, thinking, "thinking", NULL, 0, 0, NULL, "let models that can choose (V3.1) reason first"),
    K(REAL, temperature, "temperature", "0.6", 0, 100, "T", "0: always the likeliest token"),
    K(REAL, top_p, "top-p", "0.95", 0, 1, "P", "choose among the likeliest tokens that add up to P"),
    K(INT, top_k, "top-k", "-1", -1, 1e9, "K", "choose among the K likeliest tokens; -1: all"),
    K(REAL, min_p, "min-p", "0", 0, 1, "P", "leave out tokens less likely than P times the likeliest"),
    K(REAL, repetition_penalty, "repetition-penalty", "1", 0, 2, "R", "above 1: repeat less"),
    K(REAL, frequency_penalty, "frequency-penalty", "0", -2, 2, "F", "lower a token's logit by F for each time it appeared"),
    K(REAL, presence_penalty, "presence-penalty", "0", -2, 2, "F", "lower the logit of tokens that appeared by F"),
    K(INT, min_new_tokens, "min-new-tokens", "0", 0, 1 << 24, "N", "do not end before N tokens"),
    K(INT, max_new_tokens, "max-new-tokens", "0", 0, 1 << 24, "N", "end after N tokens; 0: when the context is full"),
    K(INT, seed, "seed", "-1", -1, 9e15, "N", "the same seed gives the same answer; -1: a new one each time"),
    K(WORD, stop, "stop", NULL, 0, 0, "TEXT", "end before this text; may be given several times"),
    K(FLAG, ignore_eos, "ignore-eos", NULL, 0, 0, NULL, "go on after the end-of-text token"),
    K(FLAG, show_special, "show-special", NULL, 0, 0, NULL, "show special tokens"),
};
/* clang-format on */
const int fm_n_talk_knob = (int)(sizeof fm_talk_knobs / sizeof fm_talk_knobs[0]);
