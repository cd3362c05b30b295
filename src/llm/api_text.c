/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls about text and tokens. */
#include <stdlib.h>
#include <string.h>

#include "fathom/fathom.h"
#include "llm/engine.h"
#include "llm/text/chat.h"
#include "llm/text/detokenize.h"

static fm_status find_tokenizer(const fm_engine *e, const fm_tokenizer **out)
{
    *out = fm_engine_tokenizer(e);
    return *out ? FM_OK : fm_fail(FM_E_ARG, "this model has no tokenizer");
}

/* Hands `n` elements of `size` bytes to the caller. */
static fm_status hand_over(void *to, size_t room, size_t *n_out, const void *from, size_t n,
                           size_t size)
{
    *n_out = n;
    if (!to) return FM_OK;
    if (n) memcpy(to, from, (n < room ? n : room) * size);
    if (n > room) return fm_fail(FM_E_FULL, "there is room for %zu, and it has %zu", room, n);
    return FM_OK;
}

fm_status fm_engine_tokenize(const fm_engine *e, const char *text, size_t len, int flags,
                             int32_t *token, size_t room, size_t *n)
{
    const fm_tokenizer   *t       = NULL;
    fm_tokenizer_scratch *scratch = NULL;
    fm_ids                ids     = {0};
    const int             encode  = (flags & FM_TOKENIZE_BOS ? FM_ENCODE_BOS : 0) |
                       (flags & FM_TOKENIZE_PLAIN ? FM_ENCODE_PLAIN : 0);
    if (!e || !text || !n)
        return fm_fail(FM_E_ARG, "fm_engine_tokenize: engine, text or n is NULL");
    *n = 0;
    FM_TRY(find_tokenizer(e, &t));
    FM_TRY(fm_tokenizer_scratch_create(&scratch, t));
    fm_status rc = fm_encode(t, scratch, text, len, encode, &ids);
    if (rc == FM_OK) rc = hand_over(token, room, n, ids.id, ids.n, sizeof *ids.id);
    fm_ids_fini(&ids);
    fm_tokenizer_scratch_destroy(scratch);
    return rc;
}

fm_status fm_engine_detokenize(const fm_engine *e, const int32_t *token, size_t n_token,
                               int keep_special, char *text, size_t room, size_t *n)
{
    const fm_tokenizer *t   = NULL;
    fm_str              out = {0};
    if (!e || (!token && n_token) || !n)
        return fm_fail(FM_E_ARG, "fm_engine_detokenize: engine, tokens or n is NULL");
    *n = 0;
    FM_TRY(find_tokenizer(e, &t));
    fm_detokenizer d = fm_detokenizer_begin(t, keep_special ? FM_SPECIAL_ALL : FM_SPECIAL_NONE);
    for (size_t i = 0; i < n_token; i++) fm_detokenizer_push(&d, token[i], &out);
    fm_detokenizer_end(&d, &out);
    const fm_status rc = hand_over(text, room, n, out.text, out.len, 1);
    fm_str_fini(&out);
    return rc;
}

static fm_status render(const fm_tokenizer *t, const fm_message *message, int n_message,
                        int thinking, fm_str *out, fm_reasoning_mode *mode)
{
    fm_chat_message *own = calloc((size_t)n_message + 1, sizeof *own);
    if (!own) return fm_fail(FM_E_OOM, "the conversation");
    for (int i = 0; i < n_message; i++)
        own[i] = (fm_chat_message){.role    = message[i].role ? message[i].role : "",
                                   .content = message[i].content};
    const fm_chat chat = {
        .message = own, .n_message = n_message, .thinking = thinking, .add_generation = 1};
    const fm_status rc = fm_chat_render_answer(&chat, fm_chat_style_of(t), t, out, mode);
    free(own);
    return rc;
}

fm_status fm_engine_chat_prompt(const fm_engine *e, const fm_message *message, int n_message,
                                int thinking, char *text, size_t room, size_t *n, int *is_thinking)
{
    const fm_tokenizer *t    = NULL;
    fm_str              out  = {0};
    fm_reasoning_mode   mode = FM_REASONING_OFF;
    if (!e || !message || n_message < 1 || !n)
        return fm_fail(FM_E_ARG, "fm_engine_chat_prompt: engine, messages or n is NULL");
    *n = 0;
    FM_TRY(find_tokenizer(e, &t));
    fm_status rc = render(t, message, n_message, thinking, &out, &mode);
    if (rc == FM_OK) rc = hand_over(text, room, n, out.text, out.len, 1);
    if (is_thinking) *is_thinking = mode == FM_REASONING_OPEN;
    fm_str_fini(&out);
    return rc;
}
