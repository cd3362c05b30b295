/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/tier/page_file.h"

#include <string.h>

static const char magic[8] = "fm-page";

typedef struct {
    uint32_t kind, width, dtype, n_layer;
} plane_words;

typedef struct {
    char        magic[8];
    uint32_t    version, page_size, n_plane, unused;
    uint64_t    image_bytes;
    fm_hash128  model, key;
    plane_words plane[8];
    int32_t     token[FM_PAGE_HASH_TOKENS];
    fm_hash128  image; /* checksum of the planes */
    fm_hash128  head;  /* of all of the above */
} header;

_Static_assert(sizeof(header) <= FM_PAGE_FILE_BLOCK, "the header fits its block");
_Static_assert(FM_N_PLANE_KIND <= 8, "the header has room for every plane");

static fm_hash128 head_sum(const header *h)
{
    return fm_hash_bytes(h, offsetof(header, head), FM_PAGE_FILE_VERSION);
}

static size_t file_bytes(uint64_t image_bytes)
{
    const size_t block = FM_PAGE_FILE_BLOCK;
    return block + (image_bytes + block - 1) / block * block;
}

size_t fm_page_file_bytes(const fm_page_format *f)
{
    return file_bytes(fm_planes_page_bytes(&f->planes, f->page_size));
}

/* The header but for checksums. */
static header describe(const fm_page_format *f, fm_page_hash key, const int32_t *token)
{
    header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, magic, sizeof magic);
    h.version     = FM_PAGE_FILE_VERSION;
    h.page_size   = (uint32_t)f->page_size;
    h.n_plane     = (uint32_t)f->planes.n;
    h.image_bytes = fm_planes_page_bytes(&f->planes, f->page_size);
    h.model       = f->model;
    h.key         = key;
    for (int i = 0; i < f->planes.n; i++) {
        const fm_plane *p = &f->planes.plane[i];
        h.plane[i]        = (plane_words){(uint32_t)p->kind, (uint32_t)p->width, (uint32_t)p->dtype,
                                          (uint32_t)p->n_layer};
    }
    memcpy(h.token, token, (size_t)f->page_size * sizeof *token);
    return h;
}

fm_hash128 fm_page_file_seal(char *file, const fm_page_format *f, fm_page_hash key, const int32_t *token)
{
    char *const image = fm_page_file_image(file);
    header      h     = describe(f, key, token);
    h.image           = fm_hash_bytes(image, h.image_bytes, 0);
    h.head            = head_sum(&h);
    memset(file, 0, FM_PAGE_FILE_BLOCK);
    memcpy(file, &h, sizeof h);
    memset(image + h.image_bytes, 0,
           (size_t)(file + fm_page_file_bytes(f) - image) - h.image_bytes);
    return h.image;
}

static fm_page_verdict check_head(const header *h, size_t n)
{
    if (memcmp(h->magic, magic, sizeof magic) || h->version != FM_PAGE_FILE_VERSION)
        return FM_PAGE_FOREIGN;
    if (!fm_hash_equal(h->head, head_sum(h))) return FM_PAGE_ALTERED;
    if (h->image_bytes > n || file_bytes(h->image_bytes) != n) return FM_PAGE_SHORT;
    return FM_PAGE_GOOD;
}

fm_page_verdict fm_page_file_check(const char *file, size_t n, const fm_page_format *f,
                                   fm_page_hash key, const int32_t *token)
{
    header h;
    if (n < FM_PAGE_FILE_BLOCK) return FM_PAGE_SHORT;
    memcpy(&h, file, sizeof h);
    const fm_page_verdict head = check_head(&h, n);
    if (head != FM_PAGE_GOOD) return head;
    if (f) {
        const header want = describe(f, key, token);
        if (memcmp(&h, &want, offsetof(header, image))) return FM_PAGE_FOREIGN;
    }
    const fm_hash128 sum = fm_hash_bytes(file + FM_PAGE_FILE_BLOCK, h.image_bytes, 0);
    return fm_hash_equal(sum, h.image) ? FM_PAGE_GOOD : FM_PAGE_ALTERED;
}
