/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/serve/loop/responses_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char  *id;
    fm_str object, turns;
} entry;

struct fm__responses {
    pthread_mutex_t lock;
    entry           at[FM__MAX_RESPONSES]; /* oldest first */
    int             n;
    size_t          bytes;
};

fm_status fm__responses_create(fm__responses **out)
{
    fm__responses *r = calloc(1, sizeof *r);
    if (!r) return fm_fail(FM_E_OOM, "responses");
    pthread_mutex_init(&r->lock, NULL);
    *out = r;
    return FM_OK;
}

static size_t bytes_of(const fm_str *object, const fm_str *turns)
{
    return object->len + turns->len;
}

static void remove_at(fm__responses *r, int i)
{
    entry *e = &r->at[i];
    r->bytes -= bytes_of(&e->object, &e->turns);
    free(e->id);
    fm_str_fini(&e->object);
    fm_str_fini(&e->turns);
    r->n--;
    memmove(e, e + 1, (size_t)(r->n - i) * sizeof *e);
}

void fm__responses_destroy(fm__responses *r)
{
    if (!r) return;
    while (r->n) remove_at(r, r->n - 1);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* Newest first: a conversation goes on from its last response. */
static int find(const fm__responses *r, const char *id)
{
    int i = r->n - 1;
    while (i >= 0 && strcmp(r->at[i].id, id)) i--;
    return i;
}

void fm__responses_put(fm__responses *r, const char *id, const fm_str *object, const fm_str *turns)
{
    const size_t n = bytes_of(object, turns);
    if (n > FM__MAX_RESPONSE_BYTES) return;
    pthread_mutex_lock(&r->lock);
    const int old = find(r, id);
    if (old >= 0) remove_at(r, old);
    while (r->n == FM__MAX_RESPONSES || r->bytes + n > FM__MAX_RESPONSE_BYTES) remove_at(r, 0);
    entry *e = &r->at[r->n++];
    *e       = (entry){.id = strdup(id)};
    FM_BUG_UNLESS(e->id != NULL);
    fm_str_add(&e->object, object->text, object->len);
    fm_str_add(&e->turns, turns->text, turns->len);
    r->bytes += n;
    pthread_mutex_unlock(&r->lock);
}

int fm__responses_get(fm__responses *r, const char *id, fm_str *object, fm_str *turns)
{
    pthread_mutex_lock(&r->lock);
    const int i = find(r, id);
    if (i >= 0 && object) fm_str_add(object, r->at[i].object.text, r->at[i].object.len);
    if (i >= 0 && turns) fm_str_add(turns, r->at[i].turns.text, r->at[i].turns.len);
    pthread_mutex_unlock(&r->lock);
    return i >= 0;
}

int fm__responses_drop(fm__responses *r, const char *id)
{
    pthread_mutex_lock(&r->lock);
    const int i = find(r, id);
    if (i >= 0) remove_at(r, i);
    pthread_mutex_unlock(&r->lock);
    return i >= 0;
}
