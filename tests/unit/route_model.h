/* SPDX-License-Identifier: Apache-2.0 */
/* Servers and a router in virtual time, to compare routing policies without noise: schedulers,
 * caches, page feeds and the choice of a worker are the real ones; the time of a step is a sum over
 * its rows.
 *
 *     load ──> choice ──> [scheduler, cache] x 4 ──> first token, cached tokens
 *                 ^─────────page feed─────┘
 *
 * All servers share n_core cores.  The same load, policy and seed give the same result. */
#ifndef FM_TEST_ROUTE_MODEL_H
#define FM_TEST_ROUTE_MODEL_H

#include <stdint.h>

typedef enum {
    MODEL_OURS,  /* fm__choose_worker() */
    MODEL_TREE,  /* SGLang's cache_aware, as documented: the worker to which the prompt with the
                  * longest common  prefix went, if that is more than 0.3 of this one; else the one
                  * with the fewest requests; the latter, too, if loads differ by more than 64 and a
                  * factor of 1.5 */
    MODEL_TURNS, /* round_robin */
    MODEL_ONE,   /* one server with the pools and cores of all */
    MODEL_GIVEN, /* as the caller says (model_run_places()) */
} model_policy;

enum { MODEL_WORKERS = 4, MODEL_POOL = 8192, MODEL_REQUESTS = 1500 };

typedef struct {
    int    n_client;   /* that always ask; 0: requests come at random times, `rate` a second */
    int    n_group;    /* common prefixes */
    int    n_request;  /* in all; of conversations the turns */
    int    n_prefix;   /* tokens of a prefix, by `spread` more or less */
    int    n_question; /* tokens of its own */
    int    n_output;
    int    n_turn; /* of a conversation; 0: there are none */
    double rate, spread;
    double zipf;  /* the k-th prefix is asked for in proportion to k^-zipf */
    double think; /* seconds between turns */
} model_load;

typedef struct {
    double n_cached;       /* prompt tokens */
    double ttft50, ttft99; /* seconds to the first token */
} model_result;

model_result model_run(const model_load *l, model_policy p, int n_core, uint64_t seed);

/* The server of each request, by the order of the load. */
typedef struct {
    int server[MODEL_REQUESTS];
} model_places;

/* The same; notes where requests went, or sends them there (MODEL_GIVEN). */
model_result model_run_places(const model_load *l, model_policy p, int n_core, uint64_t seed,
                              model_places *places);

#endif
