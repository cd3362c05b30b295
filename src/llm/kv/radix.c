/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kv/kv_internal.h"

#include <string.h>

static uint32_t hash_page(int32_t parent, const int32_t *tokens, int n)
{
    uint64_t h = (uint64_t)(uint32_t)parent * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < n; i++) {
        h ^= (uint32_t)tokens[i];
        h *= 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    return (uint32_t)h;
}

static int32_t *bucket_of(const fm_kv *kv, uint32_t hash)
{
    return &kv->bucket[hash & (uint32_t)(kv->n_bucket - 1)];
}

static int32_t *key_of(const fm_kv *kv, int32_t node)
{
    return kv->key + (size_t)node * (size_t)kv->opt.page_size;
}

int32_t fm__kv_find(const fm_kv *kv, int32_t parent, const int32_t *tokens)
{
    const size_t   key_bytes = (size_t)kv->opt.page_size * sizeof *tokens;
    const uint32_t hash      = hash_page(parent, tokens, kv->opt.page_size);

    for (int32_t i = *bucket_of(kv, hash); i != FM__KV_NONE; i = kv->node[i].chain) {
        const fm__kv_node *n = &kv->node[i];
        if (n->hash == hash && n->parent == parent && !memcmp(key_of(kv, i), tokens, key_bytes))
            return i;
    }
    return FM__KV_NONE;
}

void fm__kv_insert(fm_kv *kv, int32_t page, int32_t parent, const int32_t *tokens)
{
    const uint32_t hash = hash_page(parent, tokens, kv->opt.page_size);
    int32_t *const head = bucket_of(kv, hash);

    kv->node[page] = (fm__kv_node){
        .parent = parent, .n_lock = 1, .chain = *head, .hash = hash,
        .older = FM__KV_NONE, .younger = FM__KV_NONE,
    };
    *head = page;
    kv->node[parent].n_child++;
    fm__kv_below_insert(kv, page, parent, tokens);
    memcpy(key_of(kv, page), tokens, (size_t)kv->opt.page_size * sizeof *tokens);
    if (kv->listener.inserted)
        kv->listener.inserted(kv->listener.ctx, page, parent == fm__kv_root(kv) ? FM__KV_NONE : parent,
                              tokens);
}

/* The root closes the ring: its younger side is the oldest idle node. */
static void idle_push(fm_kv *kv, int32_t i)
{
    const int32_t root = fm__kv_root(kv), last = kv->node[root].older;

    kv->node[i].older      = last;
    kv->node[i].younger    = root;
    kv->node[last].younger = i;
    kv->node[root].older   = i;
    kv->n_idle++;
}

static void idle_remove(fm_kv *kv, int32_t i)
{
    fm__kv_node *n = &kv->node[i];

    kv->node[n->older].younger = n->younger;
    kv->node[n->younger].older = n->older;
    n->older = n->younger = FM__KV_NONE;
    kv->n_idle--;
}

void fm__kv_lock(fm_kv *kv, int32_t node)
{
    if (kv->node[node].n_lock++ == 0) idle_remove(kv, node);
}

void fm__kv_unlock(fm_kv *kv, int32_t node)
{
    FM_BUG_UNLESS(kv->node[node].n_lock > 0);
    if (--kv->node[node].n_lock == 0) idle_push(kv, node);
}

void fm__kv_renew(fm_kv *kv, int32_t node)
{
    if (kv->node[node].n_lock) return;
    idle_remove(kv, node);
    idle_push(kv, node);
}

static void unchain(fm_kv *kv, int32_t node)
{
    int32_t *link = bucket_of(kv, kv->node[node].hash);
    while (*link != node) link = &kv->node[*link].chain;
    *link = kv->node[node].chain;
}

int32_t fm__kv_evict(fm_kv *kv)
{
    const int32_t oldest = kv->node[fm__kv_root(kv)].younger;

    FM_BUG_UNLESS(oldest != fm__kv_root(kv) && kv->node[oldest].n_child == 0);
    idle_remove(kv, oldest);
    unchain(kv, oldest);
    kv->node[kv->node[oldest].parent].n_child--;
    if (kv->listener.evicted) kv->listener.evicted(kv->listener.ctx, oldest);
    return oldest;
}
