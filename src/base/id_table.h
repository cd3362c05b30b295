/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of records under 64-bit keys: ids, or hashes of names.  The links lie in the
 * records, which stay their owners'; several may have one key.  Finding, adding and removing are
 * O(1). One thread at a time. */
#ifndef FM_BASE_ID_TABLE_H
#define FM_BASE_ID_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct fm_id_link {
    uint64_t           key;
    struct fm_id_link *next; /* in its bucket */
} fm_id_link;

/* {0} is empty. */
typedef struct {
    fm_id_link **bucket;      /* [n_bucket] owned */
    size_t       n_bucket, n; /* n_bucket: 0 or a power of two */
} fm_id_table;

void fm_id_table_fini(fm_id_table *t); /* leaves the records alone */

/* Under l->key.  FM_E_OOM: it is not in. */
fm_status fm_id_table_add(fm_id_table *t, fm_id_link *l);
void      fm_id_table_remove(fm_id_table *t, fm_id_link *l); /* it must be there */

/* All under a key: for (l = find(t, key); l; l = next_alike(l)). */
fm_id_link *fm_id_table_find(const fm_id_table *t, uint64_t key);
fm_id_link *fm_id_table_next_alike(const fm_id_link *l);

/* All, in no order: for (l = first(t); l; l = next(t, l)). */
fm_id_link *fm_id_table_first(const fm_id_table *t);
fm_id_link *fm_id_table_next(const fm_id_table *t, const fm_id_link *l);

#endif
