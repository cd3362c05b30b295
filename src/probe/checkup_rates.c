/* SPDX-License-Identifier: Apache-2.0 */
/* A checkup as the file of rates has it. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fathom/fathom.h"
#include "probe/checkup.h"

/* Over the measured pairs on one host, or on two. */
static fm_rate over_pairs(const fm_checkup *c, const fm_rate *matrix, int is_far, int is_time)
{
    const size_t most = (size_t)c->n_rank * (size_t)c->n_rank;
    double      *x    = calloc(most, sizeof *x);
    int          n    = 0;
    FM_BUG_UNLESS(x != NULL);
    for (size_t i = 0; i < most; i++) {
        const int from = c->host_of[i / (size_t)c->n_rank], to = c->host_of[i % (size_t)c->n_rank];
        if (matrix[i].n > 0 && (from != to) == is_far) x[n++] = matrix[i].median;
    }
    const fm_rate r = is_time ? fm_rate_of_times(x, n) : fm_rate_of(x, n);
    free(x);
    return r;
}

static fm_rates_links summary(const fm_checkup *c, const fm_links *l, int is_far)
{
    if (l->n_rank == 0) return (fm_rates_links){.latency.n = 0};
    return (fm_rates_links){.latency   = over_pairs(c, l->latency, is_far, 1),
                            .bandwidth = over_pairs(c, l->bandwidth, is_far, 0)};
}

static void copy_matrix(fm_rates_link *out, const fm_links *l)
{
    for (size_t i = 0; out && i < (size_t)l->n_rank * (size_t)l->n_rank; i++)
        out[i] = (fm_rates_link){l->latency[i].median, l->bandwidth[i].median};
}

fm_status fm_checkup_rates(fm_rates *out, const fm_checkup *c)
{
    const time_t    now = time(NULL);
    const fm_links *gpu = &c->gpu_links.links;
    struct tm       utc;
    fm_rates        r = {0};
    FM_TRY(fm_rates_init(&r, c->n_rank, c->n_rank > 1, gpu->n_rank > 1));
    gmtime_r(&now, &utc);
    strftime(r.made, sizeof r.made, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(r.version, sizeof r.version, "%s", FM_VERSION);
    for (int i = 0; i < c->n_rank; i++) r.rank[i] = c->rank[i].rates;
    copy_matrix(r.link, &c->links);
    copy_matrix(r.gpu_link, gpu);
    r.near           = summary(c, &c->links, 0);
    r.far            = summary(c, &c->links, 1);
    r.all_to_all     = c->links.all_to_all;
    r.gpu_near       = summary(c, gpu, 0);
    r.gpu_far        = summary(c, gpu, 1);
    r.gpu_all_to_all = gpu->all_to_all;
    *out             = r;
    return FM_OK;
}
