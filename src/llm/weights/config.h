/* SPDX-License-Identifier: Apache-2.0 */
/* What a DeepSeek checkpoint's config.json says, after defaults and checks:
 * every number here is one that the rest of the engine may rely on. */
#ifndef FM_LLM_WEIGHTS_CONFIG_H
#define FM_LLM_WEIGHTS_CONFIG_H

#include <stdint.h>

typedef enum {
    FM_ROUTE_GREEDY,        /* V2-Lite: the k largest of softmax */
    FM_ROUTE_GROUP_LIMITED, /* V2: groups scored by their largest */
    FM_ROUTE_NOAUX_TC,      /* V3, R1: biased, groups scored by their two largest */
} fm_route_method;

typedef enum { FM_SCORE_SOFTMAX, FM_SCORE_SIGMOID } fm_score_func;

enum { FM_MAX_EOS = 8, FM_MAX_TOP_K = 64, FM_MAX_IGNORE = 16 };

typedef struct {
    char model_type[32];    /* deepseek_v2, deepseek_v3, kimi_k2 */
    char architecture[64];  /* DeepseekV3ForCausalLM */

    int vocab;      /* V */
    int hidden;     /* D, a multiple of 32 */
    int n_layer;    /* main layers; MTP layers come after these */
    int n_mtp;      /* announced; present only if the tensors are */
    int n_dense;    /* leading layers with a dense FFN */
    int moe_freq;   /* from there, layer i is MoE iff i % moe_freq == 0 */

    int n_head;     /* H */
    int q_lora;     /* 0: q comes straight from the hidden state */
    int kv_lora;    /* latent width, cached */
    int nope, rope; /* query/key head parts without and with position */
    int v_dim;      /* value width per head */

    int dense_inter;   /* FFN width of dense layers */
    int moe_inter;     /* of one expert */
    int n_expert;      /* E; 0: no MoE layer at all */
    int n_shared;      /* shared experts, fused to one of n_shared*moe_inter */
    int top_k;         /* experts per token, <= FM_MAX_TOP_K */
    int n_group, top_group;
    int             norm_top_k; /* divide the k weights by their sum */
    float           routed_scale;
    fm_route_method route;
    fm_score_func   score;

    float eps;

    double rope_theta;
    int    rope_interleave; /* pairs (2i, 2i+1); otherwise (i, i + rope/2) */
    int    yarn;            /* the rest only if set */
    double yarn_factor, yarn_beta_fast, yarn_beta_slow, yarn_mscale, yarn_mscale_all_dim;
    double yarn_attention_factor; /* 0: derive it from the two mscales */
    int    yarn_truncate;
    int    yarn_original;         /* original_max_position_embeddings */

    int max_position; /* context length */

    /* Not of the model, but of the arithmetic that was asked for: cached tokens whose attention a GPU
     * sums in one piece; 0: 512. */
    int split_tile;

    int bos;              /* -1: none */
    int eos[FM_MAX_EOS];
    int n_eos;

    /* quantization_config; what a tensor really is, its file says */
    int  fp8;  /* e4m3 with 128x128 blocks */
    int  fp8_activations; /* what FP8 weights are multiplied with is quantised, too (W8A8) */
    int  int4; /* groups of 32, for linear layers but those named here */
    char int4_ignore[FM_MAX_IGNORE][96]; /* names of layers, or "re:" and an expression */
    int  n_int4_ignore;
} fm_model_config;

enum { FM_FP8_BLOCK = 128 };

static inline int fm_layer_is_moe(const fm_model_config *c, int layer)
{
    return c->n_expert > 0 && layer >= c->n_dense && layer % c->moe_freq == 0;
}

/* Each head of kv_b_proj is whole FP8 blocks, in all directions. */
static inline int fm_heads_are_blocks(const fm_model_config *c)
{
    return (c->nope | c->v_dim | c->kv_lora) % FM_FP8_BLOCK == 0;
}

/* Elements of one cached token in one layer: latent and rope key, padded with
 * zeros to a multiple of 32 so that kernels need no tail. */
static inline int fm_kv_width(const fm_model_config *c)
{
    return (c->kv_lora + c->rope + 31) / 32 * 32;
}

/* softmax scale with YaRN's magnitude, and the multiplier of cos and sin. */
float fm_attention_scale(const fm_model_config *c);
float fm_rope_magnitude(const fm_model_config *c);
void  fm_rope_frequencies(const fm_model_config *c, float *inv_freq); /* [rope/2] */
void  fm_rope_table(const fm_model_config *c, int max_context, float *cos, float *sin); /* [, rope/2] */

/* Parameters of the main model (MTP not counted), and those one token uses. */
int64_t fm_param_count(const fm_model_config *c);
int64_t fm_param_active(const fm_model_config *c);

#endif
