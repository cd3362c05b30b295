/* SPDX-License-Identifier: Apache-2.0 */
/* Access control by the request's head (API key, Origin, Host), before the body is read. */
#ifndef FM_LLM_SERVE_LOOP_GATE_H
#define FM_LLM_SERVE_LOOP_GATE_H

#include <stdint.h>

#include "llm/serve/loop/cors.h"
#include "net/http.h"

typedef struct {
    const char        *host; /* that is listened on */
    const char *const *key;  /* [n_key] any of them opens; none: no key is needed */
    int                n_key;
    const fm__cors    *cors;
} fm__gate;

/* 1: it is not let in, and was told so.  is_open: the path needs no key and is harmless. */
int fm__gate_refuses(const fm__gate *g, fm_exchange *x, int is_open);

/* The client's own name for the request where it fits a header, else one made of key and n. */
void fm__name_request(fm_exchange *x, uint64_t key, uint64_t n);

#endif
