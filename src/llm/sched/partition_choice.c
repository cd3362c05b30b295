/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/sched/partition_choice.h"

int fm_choose_partition(const fm_partitions_view *p, const int32_t *token, int n)
{
    int     best  = 0;
    int64_t least = INT64_MAX;
    for (int i = 0; i < p->n && p->n > 1; i++) {
        const fm_partition_view v    = p->at(p->ctx, i);
        const int64_t           load = v.load - (n > 1 ? fm_kv_match(v.kv, token, n - 1) : 0);
        if (load >= least) continue;
        least = load;
        best  = i;
    }
    return best;
}

static int n_waiting(const fm_partitions_view *p, int i)
{
    return fm_sched_get_stats(p->at(p->ctx, i).sched).n_waiting;
}

int fm_choose_lender(const fm_partitions_view *p, int to)
{
    int longest = 0;
    if (p->n == 1 || n_waiting(p, to)) return -1;
    for (int i = 1; i < p->n; i++)
        if (n_waiting(p, i) > n_waiting(p, longest)) longest = i;
    return longest == to ? -1 : longest;
}
