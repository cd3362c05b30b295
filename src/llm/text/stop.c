/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/text/stop.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    FM_BUG_UNLESS(p != NULL);
    return p;
}

/* border[k]: length of the longest proper prefix of stop that also ends
 * stop[0..k). */
static int *find_borders(const char *stop, int n)
{
    int *border = allocate((size_t)n + 1, sizeof *border);
    for (int k = 1, b = 0; k < n; k++) {
        while (b && stop[k] != stop[b]) b = border[b];
        if (stop[k] == stop[b]) b++;
        border[k + 1] = b;
    }
    return border;
}

void fm_stop_init(fm_stop_filter *f, const char *const *stop, int n_stop, int keep)
{
    *f        = (fm_stop_filter){.n_stop = n_stop, .keep = keep};
    f->stop   = allocate((size_t)n_stop, sizeof *f->stop);
    f->border = allocate((size_t)n_stop, sizeof *f->border);
    f->at     = allocate((size_t)n_stop, sizeof *f->at);
    for (int i = 0; i < n_stop; i++) {
        const size_t n = strlen(stop[i]);
        f->stop[i]     = allocate(n + 1, 1);
        memcpy(f->stop[i], stop[i], n);
        f->border[i] = find_borders(stop[i], (int)n);
    }
}

void fm_stop_fini(fm_stop_filter *f)
{
    for (int i = 0; i < f->n_stop; i++) {
        free(f->stop[i]);
        free(f->border[i]);
    }
    free(f->stop);
    free(f->border);
    free(f->at);
    fm_str_fini(&f->held);
    *f = (fm_stop_filter){0};
}

/* One byte of text against stop i.  Is it complete now? */
static int advance(fm_stop_filter *f, int i, char byte)
{
    const char *stop = f->stop[i];
    int         at   = f->at[i];
    if (!*stop) return 0;
    while (at && stop[at] != byte) at = f->border[i][at];
    if (stop[at] == byte) at++;
    f->at[i] = at;
    return stop[at] == 0;
}

static int push_byte(fm_stop_filter *f, char byte)
{
    int found = 0;
    for (int i = f->n_stop - 1; i >= 0; i--)
        if (advance(f, i, byte)) found = i + 1;
    return found;
}

static void release(fm_stop_filter *f, size_t n, fm_str *out)
{
    fm_str_add(out, f->held.text, n);
    const size_t rest = f->held.len - n;
    memmove(f->held.text, f->held.text + n, rest);
    f->held.len = rest;
}

/* How much of the held text's end stays out: the stop that was found, or the
 * longest beginning of one. */
static size_t withheld(const fm_stop_filter *f)
{
    size_t n = 0;
    if (f->found) return f->keep ? 0 : strlen(f->stop[f->found - 1]);
    for (int i = 0; i < f->n_stop; i++)
        if ((size_t)f->at[i] > n) n = (size_t)f->at[i];
    return n;
}

int fm_stop_push(fm_stop_filter *f, const char *text, size_t len, fm_str *out)
{
    if (f->found) return f->found - 1;
    size_t n_read = 0;
    while (n_read < len && !f->found) f->found = push_byte(f, text[n_read++]);
    fm_str_add(&f->held, text, n_read);
    release(f, f->held.len - withheld(f), out);
    return f->found - 1;
}

void fm_stop_end(fm_stop_filter *f, fm_str *out)
{
    if (!f->found && f->held.len) release(f, f->held.len, out);
}
