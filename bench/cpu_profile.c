/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cpu_profile.h"

#include "base/clock.h"

static void op_begins(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    (void)r, (void)c;
    ((fm_profile *)h)->began = fm_now();
}

static void op_ends(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    fm_profile *p = (fm_profile *)h;
    (void)r;
    p->seconds[c->op] += fm_now() - p->began;
}

void fm_profile_begin(fm_profile *p, fm_run *r)
{
    *p = (fm_profile){.hook = {.begin = op_begins, .end = op_ends}};
    fm_run_add_hook(r, &p->hook);
}

void fm_profile_end(fm_profile *p, fm_run *r) { fm_run_remove_hook(r, &p->hook); }
