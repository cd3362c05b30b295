/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/links.h"

#include <math.h>

fm_group fm_group_of(int n, int apart, int per_node)
{
    const int span = (n - 1) * apart + 1;
    int       host = (span + per_node - 1) / per_node;
    if (host > n) host = n;
    return (fm_group){n, host > 0 ? host : 1};
}

static double levels(int n) { return n > 1 ? ceil(log2(n)) : 0; }

static double latency(const fm_cluster *c, fm_group g)
{
    return levels((g.n + g.n_host - 1) / g.n_host) * c->near.latency_s +
           levels(g.n_host) * c->far.latency_s;
}

/* Of what a rank receives, the share that comes from other hosts. */
static double far_share(fm_group g)
{
    const double here = (double)g.n / g.n_host;
    return g.n > 1 ? (g.n - here) / (g.n - 1) : 0;
}

double fm_gather_seconds(const fm_cluster *c, fm_group g, double bytes)
{
    if (g.n < 2) return 0;
    const double far = bytes * far_share(g), cards = (double)g.n / g.n_host;
    const double in = far / cards / c->far.bytes_per_s;
    /* With one rank a host nothing is passed on inside. */
    const double inside = cards > 1 ? bytes / c->near.bytes_per_s : 0;
    return latency(c, g) + in + inside;
}

double fm_all_to_all_seconds(const fm_cluster *c, fm_group g, double bytes)
{
    if (g.n < 2) return 0;
    const double far = bytes * far_share(g);
    return latency(c, g) + far / c->far.bytes_per_s + (bytes - far) / c->near.bytes_per_s;
}

double fm_send_seconds(const fm_cluster *c, int is_far, double bytes)
{
    const fm_link *l = is_far ? &c->far : &c->near;
    return l->latency_s + bytes / l->bytes_per_s;
}
