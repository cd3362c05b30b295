/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/cpu/likely.h"

#include <string.h>

#include "llm/kernel/gemm/gemm.h"

enum { FIRST = 512, LAST = 8192 }; /* tokens counted before panels are chosen, and counts halved */

/* Tokens of panels that are not likely, at most one in so many. */
enum { RARE = 128 };

static int n_panel(int n_word) { return (n_word + FM_PANEL - 1) / FM_PANEL; }

void fm_likely_carve(fm_likely *l, int n_word, fm_slab *s)
{
    l->n_all = n_panel(n_word);
    l->panel = fm_slab_take(s, (size_t)l->n_all * sizeof *l->panel);
    l->count = fm_slab_take(s, (size_t)l->n_all * sizeof *l->count);
}

static void take_panels(fm_likely *l, uint32_t least)
{
    l->n = 0;
    for (int i = 0; i < l->n_all; i++)
        if (l->count[i] >= least) l->panel[l->n++] = i;
}

void fm_likely_init(fm_likely *l)
{
    memset(l->count, 0, (size_t)l->n_all * sizeof *l->count);
    l->n_count = 0;
    l->n_next  = FIRST;
    take_panels(l, 0);
}

void fm_likely_count(fm_likely *l, int word)
{
    l->count[word / FM_PANEL]++;
    l->n_count++;
}

static uint32_t tokens_of_panels(const fm_likely *l, uint32_t least)
{
    uint32_t n = 0;
    for (int i = 0; i < l->n_all; i++)
        if (l->count[i] >= least) n += l->count[i];
    return n;
}

/* The largest count such that panels with at least as many hold all but rare tokens. */
static uint32_t least_count(const fm_likely *l)
{
    const uint32_t want = l->n_count - l->n_count / RARE;
    uint32_t       low = 1, high = l->n_count + 1; /* low is enough, high is not */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (tokens_of_panels(l, middle) >= want) low = middle;
        else high = middle;
    }
    return low;
}

static void halve(fm_likely *l)
{
    l->n_count = 0;
    for (int i = 0; i < l->n_all; i++) l->n_count += l->count[i] /= 2;
}

void fm_likely_choose(fm_likely *l)
{
    if (l->n_count < l->n_next) return;
    take_panels(l, least_count(l));
    if (l->n_count >= LAST) halve(l);
    else l->n_next *= 2;
}
