/* SPDX-License-Identifier: Apache-2.0 */
/* The "random" dataset: all input lengths, then all output lengths, then the
 * ids, each from the generator that SGLang asks, in its order. */
#include <stdlib.h>

#include "llm/data/dataset_internal.h"

static void draw_lengths(fm_mt *numpy, int32_t *len, int n, int full, double ratio)
{
    int64_t least = (int64_t)((double)full * ratio);
    if (least < 1) least = 1;
    for (int i = 0; i < n; i++)
        len[i] = (int32_t)fm_mt_numpy_randint(numpy, least, (int64_t)full + 1);
}

/* Row i counts up from a random id. */
static fm_status deal_ids(fm_dataset *d, fm__dealer *k, const int32_t *input, const int32_t *output,
                          int n, int32_t *row)
{
    const int64_t vocab  = k->opt->vocab;
    int32_t      *offset = malloc((size_t)n * sizeof *offset);
    if (!offset) return fm_fail(FM_E_OOM, "dataset random: %d rows", n);
    for (int i = 0; i < n; i++) offset[i] = (int32_t)fm_mt_numpy_randint(&k->numpy, 0, vocab);

    fm_status rc = FM_OK;
    for (int i = 0; rc == FM_OK && i < n; i++) {
        for (int32_t j = 0; j < input[i]; j++)
            row[j] = (int32_t)((offset[i] + (int64_t)i + j) % vocab);
        rc = fm__dataset_add(d, k, row, input[i], output[i]);
    }
    free(offset);
    return rc;
}

/* A prompt's ids, repeated or cut to n; 0 if it has none. */
static fm_status fill_from_talk(int *filled, int32_t *row, int32_t n, fm__dealer *k,
                                const fm__talk *talk)
{
    fm__turns turns;
    fm_ids    ids = {0};
    FM_TRY(fm__talk_read(&turns, &k->talks, talk));
    const fm_status rc = fm_encode(k->opt->tokenizer, k->scratch, turns.prompt, turns.n_prompt,
                                   FM_ENCODE_BOS, &ids);
    *filled = rc == FM_OK && ids.n > 0;
    if (*filled)
        for (int32_t j = 0; j < n; j++) row[j] = ids.id[(size_t)j % ids.n];
    fm_ids_fini(&ids);
    json_decref(turns.doc);
    return rc;
}

/* The lengths leave room for the special tokens that a server adds to a text. */
static fm_status deal_talks(fm_dataset *d, fm__dealer *k, const int32_t *input,
                            const int32_t *output, int n, int32_t *row)
{
    const int32_t special = fm_tokenizer_adds_bos(k->opt->tokenizer) ? 1 : 0;
    fm__talk     *talk    = NULL;
    FM_TRY(fm__talks_shuffled(&talk, &k->talks, &k->python));

    fm_status rc = FM_OK;
    for (int t = 0; rc == FM_OK && t < k->talks.n && d->n < n; t++) {
        const int32_t len    = input[d->n] > special ? input[d->n] - special : 1;
        int           filled = 0;
        rc                   = fill_from_talk(&filled, row, len, k, &talk[t]);
        if (rc == FM_OK && filled) rc = fm__dataset_add(d, k, row, len, output[d->n]);
    }
    free(talk);
    if (rc == FM_OK && d->n == 0)
        rc = fm_fail(FM_E_FORMAT, "%s: no conversation has a usable prompt", k->talks.file);
    return rc;
}

typedef fm_status deal_rows(fm_dataset *d, fm__dealer *k, const int32_t *input,
                            const int32_t *output, int n, int32_t *row);

static fm_status deal(fm_dataset *d, fm__dealer *k, int n, int input_len, int output_len,
                      double range_ratio, deal_rows *rows)
{
    FM_TRY(fm__dataset_fits(n, input_len));
    fm_status rc    = FM_OK;
    int32_t  *input = malloc(2 * (size_t)n * sizeof *input), *output = input ? input + n : NULL;
    int32_t  *row   = malloc((size_t)input_len * sizeof *row);
    if (!input || !row) {
        rc = fm_fail(FM_E_OOM, "dataset random: %d rows", n);
        goto out;
    }
    draw_lengths(&k->numpy, input, n, input_len, range_ratio);
    draw_lengths(&k->numpy, output, n, output_len, range_ratio);
    rc = rows(d, k, input, output, n, row);
out:
    free(row);
    free(input);
    return rc;
}

fm_status fm__deal_random(fm_dataset *d, fm__dealer *k, int n, int input_len, int output_len,
                          double range_ratio)
{
    return deal(d, k, n, input_len, output_len, range_ratio, k->talks.n ? deal_talks : deal_ids);
}

fm_status fm__deal_random_ids(fm_dataset *d, fm__dealer *k, int n, int input_len, int output_len,
                              double range_ratio)
{
    return deal(d, k, n, input_len, output_len, range_ratio, deal_ids);
}
