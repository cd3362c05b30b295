/* SPDX-License-Identifier: Apache-2.0 */
/* A random model of a DeepSeek shape in the file format of llama.cpp, for
 * running both programs on the same work:
 *
 *     bench_peer_gguf FILE [MODEL [OVERRIDES]]
 *
 *     FILE   "GGUF" version n_tensor n_key | keys | tensors' names, shapes, offsets | values
 *
 * Numbers are little-endian, strings are a 64-bit length and bytes.  Matrices
 * are BF16; norms, the router and its bias are F32.  Only the sizes matter
 * for speed, so the values are small and random, and repeat after a while. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/str.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"

/* The format's numbers for types. */
enum { KEY_U32 = 4, KEY_F32 = 6, KEY_BOOL = 7, KEY_STRING = 8 };
enum { TENSOR_F32 = 0, TENSOR_BF16 = 30, MOSTLY_BF16 = 32, SIGMOID = 2, SOFTMAX = 1 };
enum { VERSION = 3, ALIGN = 32, N_RANDOM = 4194301 /* a prime: rows do not repeat */ };

typedef struct {
    char    name[64];
    int     type, n_dim;
    int64_t dim[3]; /* innermost first */
} tensor;

typedef struct {
    fm_str   keys;
    uint64_t n_key;
    tensor  *tensor;
    size_t   n, cap;
} gguf;

static void put(fm_str *s, const void *v, size_t n)
{
    fm_str_add(s, v, n);
}

static void put_u32(fm_str *s, uint32_t v)
{
    put(s, &v, sizeof v);
}

static void put_u64(fm_str *s, uint64_t v)
{
    put(s, &v, sizeof v);
}

static void put_string(fm_str *s, const char *text)
{
    put_u64(s, strlen(text));
    fm_str_puts(s, text);
}

static void put_key(gguf *g, const char *key, uint32_t type)
{
    put_string(&g->keys, key);
    put_u32(&g->keys, type);
    g->n_key++;
}

static void key_string(gguf *g, const char *key, const char *value)
{
    put_key(g, key, KEY_STRING);
    put_string(&g->keys, value);
}

static void key_u32(gguf *g, const char *key, int64_t value)
{
    put_key(g, key, KEY_U32);
    put_u32(&g->keys, (uint32_t)value);
}

static void key_f32(gguf *g, const char *key, double value)
{
    const float f = (float)value;
    put_key(g, key, KEY_F32);
    put(&g->keys, &f, sizeof f);
}

static void key_bool(gguf *g, const char *key, int value)
{
    const uint8_t b = value != 0;
    put_key(g, key, KEY_BOOL);
    put(&g->keys, &b, sizeof b);
}

#define A(name) "deepseek2." name

static void add_attention_keys(gguf *g, const fm_model_config *c)
{
    key_u32(g, A("attention.head_count"), c->n_head);
    key_u32(g, A("attention.head_count_kv"), 1); /* all heads share the latent */
    key_u32(g, A("attention.key_length"), c->kv_lora + c->rope);
    key_u32(g, A("attention.value_length"), c->kv_lora);
    key_u32(g, A("attention.key_length_mla"), c->nope + c->rope);
    key_u32(g, A("attention.value_length_mla"), c->v_dim);
    if (c->q_lora) key_u32(g, A("attention.q_lora_rank"), c->q_lora);
    key_u32(g, A("attention.kv_lora_rank"), c->kv_lora);
    key_f32(g, A("attention.layer_norm_rms_epsilon"), c->eps);
    key_u32(g, A("rope.dimension_count"), c->rope);
    key_f32(g, A("rope.freq_base"), c->rope_theta);
    if (!c->yarn) return;
    key_string(g, A("rope.scaling.type"), "yarn");
    key_f32(g, A("rope.scaling.factor"), c->yarn_factor);
    key_u32(g, A("rope.scaling.original_context_length"), c->yarn_original);
    key_f32(g, A("rope.scaling.yarn_log_multiplier"), 0.1 * c->yarn_mscale_all_dim);
}

static void add_expert_keys(gguf *g, const fm_model_config *c)
{
    key_u32(g, A("leading_dense_block_count"), c->n_dense);
    key_u32(g, A("expert_count"), c->n_expert);
    key_u32(g, A("expert_used_count"), c->top_k);
    key_u32(g, A("expert_shared_count"), c->n_shared);
    key_u32(g, A("expert_feed_forward_length"), c->moe_inter);
    key_f32(g, A("expert_weights_scale"), c->routed_scale);
    key_bool(g, A("expert_weights_norm"), c->norm_top_k);
    key_u32(g, A("expert_gating_func"), c->score == FM_SCORE_SIGMOID ? SIGMOID : SOFTMAX);
    if (c->n_group <= 1) return;
    key_u32(g, A("expert_group_count"), c->n_group);
    key_u32(g, A("expert_group_used_count"), c->top_group);
}

static void add_keys(gguf *g, const fm_model_config *c, const char *name)
{
    key_string(g, "general.architecture", "deepseek2");
    key_string(g, "general.name", name);
    key_u32(g, "general.file_type", MOSTLY_BF16);
    key_string(g, "tokenizer.ggml.model", "no_vocab");
    key_u32(g, A("vocab_size"), c->vocab);
    key_u32(g, A("context_length"), c->max_position);
    key_u32(g, A("embedding_length"), c->hidden);
    key_u32(g, A("block_count"), c->n_layer);
    key_u32(g, A("feed_forward_length"), c->dense_inter);
    add_attention_keys(g, c);
    add_expert_keys(g, c);
}

/* [d2][d1][d0]; a dimension of 0 is absent. */
static void add_tensor(gguf *g, int type, int layer, const char *name, int64_t d0, int64_t d1,
                       int64_t d2)
{
    if (g->n == g->cap) {
        g->cap    = g->cap ? g->cap * 2 : 256;
        g->tensor = realloc(g->tensor, g->cap * sizeof *g->tensor);
        FM_BUG_UNLESS(g->tensor != NULL);
    }
    tensor *t = &g->tensor[g->n++];
    *t        = (tensor){.type = type, .n_dim = d2 ? 3 : d1 ? 2 : 1, .dim = {d0, d1, d2}};
    if (layer < 0) snprintf(t->name, sizeof t->name, "%s", name);
    else snprintf(t->name, sizeof t->name, "blk.%d.%s", layer, name);
}

static void add_vector(gguf *g, int layer, const char *name, int64_t n)
{
    add_tensor(g, TENSOR_F32, layer, name, n, 0, 0);
}

static void add_matrix(gguf *g, int layer, const char *name, int64_t in, int64_t out)
{
    add_tensor(g, TENSOR_BF16, layer, name, in, out, 0);
}

static void add_attention(gguf *g, const fm_model_config *c, int l)
{
    const int64_t D = c->hidden, H = c->n_head, q = H * (c->nope + c->rope);
    add_vector(g, l, "attn_norm.weight", D);
    if (c->q_lora) {
        add_matrix(g, l, "attn_q_a.weight", D, c->q_lora);
        add_vector(g, l, "attn_q_a_norm.weight", c->q_lora);
        add_matrix(g, l, "attn_q_b.weight", c->q_lora, q);
    } else {
        add_matrix(g, l, "attn_q.weight", D, q);
    }
    add_matrix(g, l, "attn_kv_a_mqa.weight", D, c->kv_lora + c->rope);
    add_vector(g, l, "attn_kv_a_norm.weight", c->kv_lora);
    add_tensor(g, TENSOR_BF16, l, "attn_k_b.weight", c->nope, c->kv_lora, H);
    add_tensor(g, TENSOR_BF16, l, "attn_v_b.weight", c->kv_lora, c->v_dim, H);
    add_matrix(g, l, "attn_output.weight", H * c->v_dim, D);
}

static void add_dense(gguf *g, const fm_model_config *c, int l)
{
    add_matrix(g, l, "ffn_gate.weight", c->hidden, c->dense_inter);
    add_matrix(g, l, "ffn_up.weight", c->hidden, c->dense_inter);
    add_matrix(g, l, "ffn_down.weight", c->dense_inter, c->hidden);
}

static void add_experts(gguf *g, const fm_model_config *c, int l)
{
    const int64_t D = c->hidden, I = c->moe_inter, E = c->n_expert, shared = c->n_shared * I;
    add_tensor(g, TENSOR_F32, l, "ffn_gate_inp.weight", D, E, 0);
    if (c->route == FM_ROUTE_NOAUX_TC) add_vector(g, l, "exp_probs_b.bias", E);
    add_tensor(g, TENSOR_BF16, l, "ffn_gate_exps.weight", D, I, E);
    add_tensor(g, TENSOR_BF16, l, "ffn_up_exps.weight", D, I, E);
    add_tensor(g, TENSOR_BF16, l, "ffn_down_exps.weight", I, D, E);
    add_matrix(g, l, "ffn_gate_shexp.weight", D, shared);
    add_matrix(g, l, "ffn_up_shexp.weight", D, shared);
    add_matrix(g, l, "ffn_down_shexp.weight", shared, D);
}

static void add_tensors(gguf *g, const fm_model_config *c)
{
    add_matrix(g, -1, "token_embd.weight", c->hidden, c->vocab);
    for (int l = 0; l < c->n_layer; l++) {
        add_attention(g, c, l);
        add_vector(g, l, "ffn_norm.weight", c->hidden);
        if (fm_layer_is_moe(c, l)) add_experts(g, c, l);
        else add_dense(g, c, l);
    }
    add_vector(g, -1, "output_norm.weight", c->hidden);
    add_matrix(g, -1, "output.weight", c->hidden, c->vocab);
}

static size_t values_of(const tensor *t)
{
    size_t n = 1;
    for (int i = 0; i < t->n_dim; i++) n *= (size_t)t->dim[i];
    return n;
}

static size_t bytes_of(const tensor *t)
{
    return values_of(t) * (t->type == TENSOR_F32 ? sizeof(float) : sizeof(fm_bf16));
}

static void write_head(fm_str *head, const gguf *g)
{
    uint64_t offset = 0;
    fm_str_puts(head, "GGUF");
    put_u32(head, VERSION);
    put_u64(head, g->n);
    put_u64(head, g->n_key);
    put(head, g->keys.text, g->keys.len);
    for (size_t i = 0; i < g->n; i++) {
        const tensor *t = &g->tensor[i];
        put_string(head, t->name);
        put_u32(head, (uint32_t)t->n_dim);
        put(head, t->dim, (size_t)t->n_dim * sizeof t->dim[0]);
        put_u32(head, (uint32_t)t->type);
        put_u64(head, offset);
        offset += fm_round_up(bytes_of(t), ALIGN);
    }
    while (head->len % ALIGN) put(head, "", 1);
}

/* Uniform with the spread of trained weights. */
static fm_bf16 *make_random(void)
{
    fm_bf16 *r = malloc(N_RANDOM * sizeof *r);
    for (int i = 0; r && i < N_RANDOM; i++)
        r[i] = fm_bf16_of_f32(((float)fm_rng_u32(1, (uint64_t)i) * 0x1p-32f - 0.5f) * 0.07f);
    return r;
}

static void write_matrix(FILE *f, const fm_bf16 *random, size_t n, size_t *at)
{
    while (n) {
        const size_t run = n < N_RANDOM - *at ? n : N_RANDOM - *at;
        fwrite(random + *at, sizeof *random, run, f);
        *at = (*at + run) % N_RANDOM;
        n -= run;
    }
}

/* Norms are ones, the rest of F32 (the router) is random. */
static void write_floats(FILE *f, const tensor *t, const fm_bf16 *random)
{
    for (size_t i = 0, n = values_of(t); i < n; i++) {
        const float v = strstr(t->name, "norm") ? 1.0f : fm_f32_of_bf16(random[i % N_RANDOM]);
        fwrite(&v, sizeof v, 1, f);
    }
}

static fm_status write_file(const char *path, const gguf *g, const fm_bf16 *random)
{
    static const char zeros[ALIGN];
    fm_str            head = {0};
    size_t            at   = 0;
    FILE             *f    = fopen(path, "wb");
    if (!f) return fm_fail(FM_E_IO, "open %s: %s", path, strerror(errno));
    write_head(&head, g);
    fwrite(head.text, 1, head.len, f);
    for (size_t i = 0; i < g->n && !ferror(f); i++) {
        const tensor *t     = &g->tensor[i];
        const size_t  bytes = bytes_of(t);
        if (t->type == TENSOR_F32) write_floats(f, t, random);
        else write_matrix(f, random, values_of(t), &at);
        fwrite(zeros, 1, fm_round_up(bytes, ALIGN) - bytes, f);
    }
    fm_str_fini(&head);
    const int broken = ferror(f);
    if (fclose(f) || broken) return fm_fail(FM_E_IO, "%s: cannot be written completely", path);
    return FM_OK;
}

static fm_status read_shape(fm_model_config *c, const char *model, const char *overrides)
{
    const char *text = fm_builtin_config(model);
    if (!text) return fm_fail(FM_E_ARG, "\"%s\" is none of r1-mini, v2-lite, r1", model);
    return fm_config_parse(c, text, strlen(text), model, overrides);
}

static fm_status make(const char *path, const char *model, const char *overrides)
{
    fm_model_config c = {0};
    gguf            g = {0};
    FM_TRY(read_shape(&c, model, overrides));
    if (!c.n_expert || c.moe_freq != 1)
        return fm_fail(FM_E_NOSUP,
                       "%s: llama.cpp wants experts in every layer after the dense ones", model);
    add_keys(&g, &c, model);
    add_tensors(&g, &c);
    fm_bf16        *random = make_random();
    const fm_status rc     = random ? write_file(path, &g, random) : fm_fail(FM_E_OOM, "values");
    free(random);
    free(g.tensor);
    fm_str_fini(&g.keys);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: bench_peer_gguf FILE [MODEL [OVERRIDES]]\n");
        return 2;
    }
    if (make(argv[1], argc > 2 ? argv[2] : "r1-mini", argc > 3 ? argv[3] : NULL) == FM_OK) return 0;
    fprintf(stderr, "bench_peer_gguf: %s\n", fm_why());
    return 2;
}
