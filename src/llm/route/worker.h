/* SPDX-License-Identifier: Apache-2.0 */
/* One server behind the router: its address, whether it is well, what it does.
 *
 * A worker is created when it joins the table and destroyed when it has left it
 * and its last request has ended.  The loop's thread alone. */
#ifndef FM_LLM_ROUTE_WORKER_H
#define FM_LLM_ROUTE_WORKER_H

#include <stdint.h>

#include "base/str.h"
#include "llm/route/breaker.h"
#include "llm/route/cache_index.h"
#include "llm/route/histogram.h"
#include "llm/route/query.h"
#include "llm/route/settings.h"
#include "net/upstream.h"

/* In the file of workers; and in the reading of it that is under way. */
enum { FM_LISTED = 1, FM_LISTED_NOW };

typedef enum { FM_WORKER_NEW, FM_WORKER_UP, FM_WORKER_DOWN } fm_worker_health;

/* What happened at a worker since it joined. */
typedef struct {
    int64_t      n_request, n_error, n_retry; /* retry: tries that began after another failed */
    int64_t      n_resume;                    /* streams it went on with */
    int64_t      n_probe_failure;
    int64_t      n_prompt_token, n_hit_token; /* as predicted when requests were sent */
    fm_histogram first_byte, whole;           /* seconds */
} fm_worker_counts;

/* What it says of its cache and its speed (feed.c). */
typedef struct {
    fm_cache_index pages;
    uint64_t       epoch, version; /* up to where it is known */
    int            page_size;      /* 0: it has said nothing yet */
    int            n_page;         /* that its cache has room for */
    double         prefill_rate, row_seconds;
    double         rated;     /* when prefill_rate was last another one than before */
    int            load;      /* answers that ran or waited there when it said so, */
    int            elsewhere; /* and those of them that this router had not sent */
    fm_query       query;
    int            is_none; /* it has no feed */
    double         next;    /* when it is asked again */
} fm_worker_feed;

/* Whether its engine makes progress (progress.c). */
typedef struct {
    fm_query query; /* /metrics */
    double   asked; /* when it was sent */
    double   heard; /* the last byte of a reply; or the first request after a time without */
    double   n_step, moved; /* steps of its engine; when they were seen to have become more */
    int      is_hung;       /* down until it has generated a token on request */
} fm_worker_progress;

typedef struct fm_worker fm_worker;
struct fm_worker {
    char            *url;       /* as given: its name */
    char            *api_key;   /* or NULL */
    int              id;        /* counts up; never used twice */
    int              from_file; /* FM_LISTED..., or 0: it came otherwise */
    int              joined;    /* by a request */
    fm_upstream     *upstream;
    struct fm_route *route; /* whose table it is in */

    fm_worker_health health;
    int              n_good, n_bad; /* checks in a row */
    fm_query         probe;
    double           probed;  /* when the last one began */
    char             why[96]; /* what was wrong with the last check; empty: nothing */
    fm_breaker       breaker;

    int     draining, leaving; /* no new requests; and gone after the last */
    int     n_active;          /* requests under way */
    int64_t pending_tokens;    /* uncached prompt tokens of requests without a first byte */
    int64_t promised_tokens;   /* that answers under way may have */

    fm_worker_counts   counts;
    fm_worker_feed     feed;
    fm_worker_progress progress;
    fm_query           info;     /* /get_server_info (worker_info.c) */
    fm_settings        settings; /* as it said there */
    int                n_gather; /* replies that are waited for (gather.h) */

    fm_worker *next;
};

fm_status fm_worker_create(fm_worker **out, fm_loop *l, const char *url, const char *api_key);
void      fm_worker_destroy(fm_worker *w); /* NULL is fine */

const char *fm_worker_health_name(fm_worker_health h); /* "new", "up", "down" */

/* Its next check is due: at once while its state is unsure. */
int fm_worker_probe_is_due(const fm_worker *w, double interval, double now);
/* A check ended.  1: it is up or down since this one. */
int fm_worker_take_probe(fm_worker *w, int good, int n_up, int n_down);
/* A check has had no answer for so long that others are to be preferred. */
int fm_worker_is_suspect(const fm_worker *w, double now);

#endif
