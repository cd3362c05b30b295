/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks divide things, for tests in C++. */
#include "exchange/columns_definition.h"

#include "llm/weights/shard.h"

void right_part(int part, int n_part, int n, int unit, int *begin, int *end)
{
    const fm_range r = fm_share_of((fm_share){part, n_part}, n, unit);
    *begin           = r.begin;
    *end             = r.end;
}
