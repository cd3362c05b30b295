/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the file of --preset: words that begin with an option, or a sentence. */
#define _GNU_SOURCE
#include "fuzz_file.h"

#include <string.h>

#include "preset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char        *argv[] = {"fathom", "--preset", (char *)file_of(data, size), NULL};
    fm_word_list words  = {0};
    if (fm_preset_words(&words, 3, argv) != FM_OK) {
        FM_BUG_UNLESS(fm_why()[0]);
        return 0;
    }
    FM_BUG_UNLESS(words.n >= 3 && !strcmp(words.word[0], "fathom"));
    fm_word_list_fini(&words);
    return 0;
}
