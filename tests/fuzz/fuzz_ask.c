/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the body of a request: refused with a sentence, or an ask that keeps the limits.
 * The first byte chooses the dialect. */
#include <stdint.h>
#include <stdlib.h>

#include "../unit/text_tiny.h"
#include "llm/serve/read/ask.h"

enum { N_TOKEN = 257, EOS = 256, CONTEXT = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static fm__reader *open_reader(void)
{
    static fm__facts  facts;
    static fm__reader reader = {.facts = &facts};
    const int32_t     eos    = EOS;
    fm_tokenizer     *t      = NULL;
    fm_str            text   = {0};
    tiny_write(&text, (tiny){.added = "[{\"id\":256,\"content\":\"<end>\",\"special\":true}]"});
    if (fm_tokenizer_parse(&t, text.text, text.len, "tiny") != FM_OK) abort();
    fm_str_fini(&text);
    facts = (fm__facts){.tokenizer    = t,
                        .chat_style   = FM_CHAT_R1,
                        .reasoning    = FM_REASONING_OPEN,
                        .has_tools    = 1,
                        .tool_style   = FM_TOOLS_V3,
                        .defaults     = fm_sampling_default(),
                        .vocab        = N_TOKEN,
                        .context      = CONTEXT,
                        .model        = "served",
                        .prompts_only = 1}; /* grammars have a target of their own */
    if (fm_grammars_create(&facts.grammars, t, N_TOKEN, &eos, 1) != FM_OK) abort();
    if (fm_tokenizer_scratch_create(&reader.scratch, t) != FM_OK) abort();
    return &reader;
}

static void check(const fm__ask *a)
{
    for (int i = 0; i < a->n_prompt; i++) {
        const fm__prompt *p = &a->prompt[i];
        FM_BUG_UNLESS(p->token.n > 0 && p->token.n <= CONTEXT);
        for (size_t k = 0; k < p->token.n; k++)
            FM_BUG_UNLESS(p->token.id[k] >= 0 && p->token.id[k] < N_TOKEN);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fm__reader        *reader;
    static fm__read_fn *const read[] = {
        fm__read_chat,      fm__read_completion,  fm__read_generate,       fm__read_messages,
        fm__read_responses, fm__read_ollama_chat, fm__read_ollama_generate};
    json_t *body = NULL;
    if (!reader) reader = open_reader();
    if (size < 1 || fm_json_parse(&body, (const char *)data + 1, size - 1, "request") != FM_OK)
        return 0;
    fm__ask *a = fm__ask_create();
    if (read[data[0] % (sizeof read / sizeof *read)](a, body, reader) == FM_OK)
        check(a);
    else
        FM_BUG_UNLESS(fm_why()[0]);
    fm__ask_release(a);
    json_decref(body);
    return 0;
}
