/* SPDX-License-Identifier: Apache-2.0 */
/* The head that every message of a courier begins with. */
#ifndef FM_LLM_RANK_PLAN_INTERNAL_H
#define FM_LLM_RANK_PLAN_INTERNAL_H

#include "llm/rank/plan_wire.h"

enum { FM__PLAN_MAGIC = 0x4e41504d, FM__HEAD_WORDS = 6 };
enum { FM__AT_MAGIC, FM__AT_KIND, FM__AT_LANE, FM__AT_SERIAL, FM__AT_LENGTH, FM__AT_LINK };

/* Writes the head of a message of n words, padded to its least length, which is returned. */
size_t fm__plan_seal(int32_t *message, size_t n, const fm_plan_head *head);

fm_status fm__plan_garbled(const char *what);

#endif
