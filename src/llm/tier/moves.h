/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks do to pages before a pass, in this order: decided by the leader of a replica
 * alone, carried out by every rank on its own planes. */
#ifndef FM_LLM_TIER_MOVES_H
#define FM_LLM_TIER_MOVES_H

#include "llm/kv/page_hash.h"

typedef enum {
    FM_MOVE_WRITE,   /* page -> a file named `key` */
    FM_MOVE_READ,    /* the file -> slot, beside computing */
    FM_MOVE_IN,      /* slot -> page; a slot for reading is idle then */
    FM_MOVE_DROP,    /* the slot's bytes are of no use: it is idle */
    FM_MOVE_OUT,     /* page -> slot of the host tier */
    FM_MOVE_OUT_NOW, /* the same, and the next pass may overwrite the page */
    FM_MOVE_KEEP,    /* slot of the host tier -> a file named `key` */
    FM_MOVE_CHECK,   /* the checksum of page `key` in a slot of the host tier is compared, beside
                      * computing; `depth` is the number of the check, counted behind the slots that
                      * files are read into */
    FM_MOVE_IN_NOW,  /* as IN, and the next pass reads the page */
    FM_N_MOVE
} fm_move_kind;

typedef struct fm_page_move {
    int32_t      kind, page, slot;
    int32_t      depth;                      /* of the page in its text; WRITE, READ, KEEP */
    fm_page_hash key;                        /* all but IN and DROP */
    int32_t      token[FM_PAGE_HASH_TOKENS]; /* of the page; WRITE, READ, KEEP */
} fm_page_move;

typedef struct {
    fm_page_move *move; /* [cap] */
    int           n, cap;
} fm_moves;

#endif
