/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the pool, copied to images of them and back. */
#include "llm/op/cpu/cpu_internal.h"

fm_status fm__cpu_copy_pages(fm_run *r, const fm_page_copy *copy, int n)
{
    const fm_run_limits *lim    = &r->limits;
    char *const          pool   = fm__cpu(r)->kv;
    const size_t         n_slot = (size_t)lim->n_page * (size_t)lim->page_size;
    for (int i = 0; i < n; i++) {
        const fm_page_copy *c = &copy[i];
        if (c->is_out)
            fm_planes_page_out(&lim->planes, pool, n_slot, lim->page_size, c->page, c->image);
        else
            fm_planes_page_in(&lim->planes, pool, n_slot, lim->page_size, c->page, c->image);
    }
    return FM_OK;
}
