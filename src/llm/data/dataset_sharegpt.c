/* SPDX-License-Identifier: Apache-2.0 */
/* The "sharegpt" dataset: prompts of a shuffled file; a row asks for as many
 * tokens as the file's own answer has. */
#define _GNU_SOURCE /* memmem */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "llm/data/dataset_internal.h"

/* The chat template around one user turn, rendered once. */
typedef struct {
    fm_str text;
    size_t hole; /* the prompt goes here, in place of one byte */
} frame;

/* A control character that no template contains marks the place. */
static fm_status make_frame(frame *out, const fm_tokenizer *t)
{
    const fm_chat_message user = {.role = "user", .content = "\x01"};
    const fm_chat         chat = {.message = &user, .n_message = 1, .add_generation = 1};
    FM_TRY(fm_chat_render(&chat, fm_chat_style_of(t), t, &out->text));
    const char *at = out->text.len ? memchr(out->text.text, '\x01', out->text.len) : NULL;
    if (!at) return fm_fail(FM_E_FORMAT, "chat template: it drops the user's message");
    out->hole = (size_t)(at - out->text.text);
    return FM_OK;
}

static void add_without(fm_str *out, const char *s, size_t len, const char *drop, size_t n_drop)
{
    const char *at;
    while (n_drop && len && (at = memmem(s, len, drop, n_drop))) {
        fm_str_add(out, s, (size_t)(at - s));
        len -= (size_t)(at - s) + n_drop;
        s = at + n_drop;
    }
    fm_str_add(out, s, len);
}

/* prompt -> frame around it, without the BOS text: encoding adds the token. */
static void put_in_frame(fm_str *out, const frame *f, const fm_str *prompt, const fm_tokenizer *t)
{
    const int32_t bos  = fm_tokenizer_bos(t);
    size_t        n    = 0;
    const char   *drop = bos >= 0 ? fm_token_bytes(t, bos, &n) : NULL;
    fm_str        full = {0};
    fm_str_add(&full, f->text.text, f->hole);
    fm_str_add(&full, prompt->text, prompt->len);
    fm_str_add(&full, f->text.text + f->hole + 1, f->text.len - f->hole - 1);
    add_without(out, full.text, full.len, drop, n);
    fm_str_fini(&full);
}

/* "… Assistant:" -> "… SUFFIX Assistant:" */
static void put_suffix(fm_str *out, const char *prompt, size_t len, const char *suffix)
{
    static const char assistant[] = "Assistant:";
    const size_t      n           = sizeof assistant - 1;
    if (!suffix || !*suffix) {
        fm_str_add(out, prompt, len);
        return;
    }
    if (len >= n && memcmp(prompt + len - n, assistant, n) == 0) len -= n;
    fm_str_add(out, prompt, len);
    fm_str_puts(out, suffix);
    fm_str_puts(out, assistant);
}

static fm_status encode_prompt(fm_ids *ids, fm__dealer *k, const frame *f, const fm__turns *turns)
{
    const fm_data_options *o = k->opt;
    fm_str plain = {0}, framed = {0};
    put_suffix(&plain, turns->prompt, turns->n_prompt, o->prompt_suffix);
    if (o->apply_chat) put_in_frame(&framed, f, &plain, o->tokenizer);

    const fm_str   *text = o->apply_chat ? &framed : &plain;
    const fm_status rc   = fm_encode(o->tokenizer, k->scratch, text->text ? text->text : "",
                                     text->len, FM_ENCODE_BOS, ids);
    fm_str_fini(&plain);
    fm_str_fini(&framed);
    return rc;
}

/* The answer's length, BOS included, unless one length was asked for. */
static fm_status output_length(int64_t *n, fm__dealer *k, const fm__turns *turns)
{
    const fm_data_options *o = k->opt;
    *n = o->sharegpt_output_len;
    if (*n) return FM_OK;
    fm_ids ids = {0};
    const fm_status rc =
        fm_encode(o->tokenizer, k->scratch, turns->reply, turns->n_reply, FM_ENCODE_BOS, &ids);
    *n = (int64_t)ids.n;
    fm_ids_fini(&ids);
    return rc;
}

static int wanted(const fm_data_options *o, int64_t n, int64_t n_output)
{
    if (n < 2 || n_output < 2) return 0;
    return !o->sharegpt_context_len || n + n_output <= o->sharegpt_context_len;
}

static fm_status deal_one(fm_dataset *d, fm__dealer *k, const frame *f, const fm__talk *talk)
{
    fm_status rc       = FM_OK;
    fm_ids    ids      = {0};
    int64_t   n_output = 0;
    fm__turns turns;
    FM_TRY(fm__talk_read(&turns, &k->talks, talk));
    FM_GO(encode_prompt(&ids, k, f, &turns));
    FM_GO(output_length(&n_output, k, &turns));
    if (wanted(k->opt, (int64_t)ids.n, n_output))
        rc = fm__dataset_add(d, k, ids.id, (int64_t)ids.n, n_output);
out:
    fm_ids_fini(&ids);
    json_decref(turns.doc);
    return rc;
}

fm_status fm__deal_sharegpt(fm_dataset *d, fm__dealer *k)
{
    fm_status rc   = FM_OK;
    frame     f    = {0};
    fm__talk *talk = NULL;
    if (k->opt->apply_chat) FM_GO(make_frame(&f, k->opt->tokenizer));
    FM_GO(fm__talks_shuffled(&talk, &k->talks, &k->python));
    for (int t = 0; t < k->talks.n && d->n < k->opt->n_prompt; t++)
        FM_GO(deal_one(d, k, &f, &talk[t]));
    if (d->n == 0)
        rc = fm_fail(FM_E_FORMAT, "%s: no conversation is long enough and fits the limits",
                     k->talks.file);
out:
    free(talk);
    fm_str_fini(&f.text);
    return rc;
}
