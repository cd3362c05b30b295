/* SPDX-License-Identifier: Apache-2.0 */
/* Which worker keeps a response: /v1/responses are stored by the server that gave
 * them, so what refers to one by its id must go there.  The last few thousand are
 * remembered.  {0} is empty. */
#ifndef FM_LLM_ROUTE_AFFINITY_H
#define FM_LLM_ROUTE_AFFINITY_H

#include <stdint.h>

enum { FM_AFFINITY_ROOM = 4096 };

typedef struct {
    struct {
        uint64_t name; /* a hash of the id */
        int      worker;
    } kept[FM_AFFINITY_ROOM];
    unsigned n;
} fm_affinity;

void fm_affinity_add(fm_affinity *a, const char *response, int worker);
int  fm_affinity_find(const fm_affinity *a, const char *response); /* a worker's id; 0: none */

#endif
