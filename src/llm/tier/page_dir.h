/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a directory of stored pages, and walks over them.
 *
 *     DIR/MODEL/about            what the model is, for people
 *     DIR/MODEL/3f/3f9a...page   a page; its name is its identity, 32 hexadecimal digits
 *     DIR/MODEL/3f/....tmp       being written; a process that was killed leaves it behind
 *
 * MODEL is 16 digits of the model's fingerprint.  The name of a page says which it is, so a
 * scan reads names alone and opens nothing. */
#ifndef FM_LLM_TIER_PAGE_DIR_H
#define FM_LLM_TIER_PAGE_DIR_H

#include "llm/kv/page_hash.h"
#include "llm/tier/disk.h"

enum { FM_PAGE_PATH = 4096, FM_PAGE_FOLDERS = 256 };

typedef struct {
    char         model[17];
    fm_page_hash key;   /* zeros: a temporary file */
    int64_t      bytes; /* the rest only by walks with facts */
    double       used;  /* when it was last written or read, seconds since 1970 */
    const char  *path;
} fm_stored_page;

/* 0, or an errno value that ends the walk. */
typedef int (*fm_page_visit)(void *ctx, const fm_stored_page *p);

/* 0: the path is too long. */
int fm_page_dir_model(char out[FM_PAGE_PATH], const char *dir, fm_hash128 model);
int fm_page_dir_folder(char out[FM_PAGE_PATH], const char *dir, fm_hash128 model, int folder);
int fm_page_dir_page(char out[FM_PAGE_PATH], const char *dir, fm_hash128 model, fm_page_hash key);

/* Pages in one folder of a model; a folder that is not there has none. */
int fm_page_dir_walk_folder(fm_disk *d, const char *folder, fm_page_visit visit, void *ctx);

/* Every page of every model, with sizes and times. */
int fm_page_dir_walk(fm_disk *d, const char *dir, fm_page_visit visit, void *ctx);

#endif
