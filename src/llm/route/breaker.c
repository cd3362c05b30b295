/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/breaker.h"

int fm_breaker_allows(fm_breaker *b, const fm_breaker_options *o, double now)
{
    if (b->state == FM_BREAKER_OPEN && now - b->opened >= o->seconds)
        *b = (fm_breaker){.state = FM_BREAKER_HALF_OPEN};
    if (b->state == FM_BREAKER_HALF_OPEN) return b->n_trial == 0;
    return b->state == FM_BREAKER_CLOSED;
}

void fm_breaker_begin(fm_breaker *b)
{
    if (b->state == FM_BREAKER_HALF_OPEN) b->n_trial++;
}

void fm_breaker_forget(fm_breaker *b)
{
    if (b->state == FM_BREAKER_HALF_OPEN && b->n_trial) b->n_trial--;
}

void fm_breaker_succeed(fm_breaker *b, const fm_breaker_options *o)
{
    fm_breaker_forget(b);
    b->n_failure = 0;
    if (b->state == FM_BREAKER_HALF_OPEN && ++b->n_success >= o->successes) *b = (fm_breaker){0};
}

void fm_breaker_fail(fm_breaker *b, const fm_breaker_options *o, double now)
{
    b->n_failure++;
    if (!o->failures || b->state == FM_BREAKER_OPEN) return;
    if (b->state == FM_BREAKER_CLOSED && b->n_failure < o->failures) return;
    *b = (fm_breaker){.state = FM_BREAKER_OPEN, .opened = now};
}

const char *fm_breaker_name(fm_breaker_state s)
{
    static const char *const name[] = {"closed", "open", "half_open"};
    return name[s];
}
