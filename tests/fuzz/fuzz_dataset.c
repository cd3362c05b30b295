/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a ShareGPT file: an error or rows, never a crash.  The first
 * byte chooses options, the rest is the file. */
#include <stdint.h>
#include <stdlib.h>

#include "base/status.h"
#include "base/str.h"
#include "llm/data/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The code point that stands for a byte in a byte-level vocabulary. */
static unsigned letter_of(unsigned byte)
{
    const int plain = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    if (plain) return byte;
    if (byte <= 32) return 256 + byte;
    return byte < 173 ? 256 + 33 + byte - 127 : 256 + 67;
}

/* One token per byte, no merges. */
static fm_tokenizer *byte_tokenizer(void)
{
    fm_tokenizer *t = NULL;
    fm_str        s = {0};
    fm_str_puts(&s, "{\"added_tokens\":[{\"id\":256,\"content\":\"<bos>\",\"special\":true}],"
                    "\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
    for (unsigned b = 0; b < 256; b++)
        fm_str_printf(&s, "%s\"\\u%04x\":%u", b ? "," : "", letter_of(b), b);
    fm_str_puts(&s, "}},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                    "\"use_regex\":false},\"decoder\":{\"type\":\"ByteLevel\"}}");
    FM_BUG_UNLESS(fm_tokenizer_parse(&t, s.text, s.len, "bytes") == FM_OK);
    fm_str_fini(&s);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fm_tokenizer *tokenizer; /* lives as long as the process */
    if (!tokenizer) tokenizer = byte_tokenizer();
    if (size == 0) return 0;

    fm_data_options o     = fm_data_default();
    o.name                = data[0] & 1 ? "random" : "sharegpt";
    o.path                = "fuzz";
    o.text                = (const char *)data + 1;
    o.text_len            = size - 1;
    o.tokenizer           = tokenizer;
    o.vocab               = 257;
    o.n_prompt            = 8;
    o.random_input_len    = 16;
    o.random_output_len   = 16;
    o.apply_chat          = data[0] >> 1 & 1;
    o.prompt_suffix       = data[0] & 4 ? "suffix" : NULL;
    o.sharegpt_output_len = data[0] & 8 ? 7 : 0;
    o.context             = data[0] & 16 ? 20 : 0;

    fm_dataset rows, warmup;
    if (fm_dataset_draw(&rows, &warmup, &o) != FM_OK) {
        FM_BUG_UNLESS(fm_why()[0]);
        return 0;
    }
    FM_BUG_UNLESS(rows.n > 0 && rows.n <= 8 && warmup.n > 0);
    for (int i = 0; i < rows.n; i++)
        FM_BUG_UNLESS(rows.row[i].n_prompt > 0 && rows.row[i].n_output > 0);
    fm_dataset_fini(&rows);
    fm_dataset_fini(&warmup);
    return 0;
}
