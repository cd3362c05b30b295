/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form of attention: it says what the expanded form says, and its
 * bits depend on neither page size, threads, nor the other rows of the batch.
 * Texts span several parts of 256 keys; 18 heads are a group of 16 and one of 2. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/model/model.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/load/source.h"
#include "llm/load/weights_fill.h"
#include "llm/op/run.h"

enum { HEADS = 18, V_DIM = 32, LONGEST = 700, N_TEXT = 3, N_SPAN = 5, MAX_ROWS = 16, CHUNK = 16 };

static const char overrides[] =
    "{\"hidden_size\":64,\"intermediate_size\":64,\"vocab_size\":50,\"n_routed_experts\":4,"
    "\"n_group\":1,\"topk_group\":1,\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,"
    "\"num_attention_heads\":18,\"num_key_value_heads\":18,\"num_hidden_layers\":1,"
    "\"q_lora_rank\":32,\"kv_lora_rank\":64,\"qk_nope_head_dim\":32,\"qk_rope_head_dim\":16,"
    "\"v_head_dim\":32,\"bos_token_id\":0,\"eos_token_id\":1}";

static const int text_len[N_TEXT] = {LONGEST, 300, 5};

/* Rows in the middle of a part, at its edges, and at a text's first token. */
static const struct {
    int text, pos0, n_row;
} wanted[N_SPAN] = {{0, 697, 3}, {1, 299, 1}, {0, 254, 4}, {2, 4, 1}, {2, 0, 1}};

typedef struct {
    fm_model_config config;
    fm_source      *source;
    fm_weights      weights;
    void           *slab;
    fm_comm         self;
    fm_run         *run;
    int             pages; /* of a text */
    int32_t        *page;  /* [N_TEXT][pages] */
} stand;

static int load(void **state)
{
    static stand s;
    const char  *text = fm_builtin_config("r1-mini");
    assert_int_equal(fm_config_parse(&s.config, text, strlen(text), "small", overrides), FM_OK);
    assert_int_equal(fm_source_open_dummy(&s.source, &s.config, 1), FM_OK);
    s.self = fm_comm_self();
    *state = &s;
    return 0;
}

static int unload(void **state)
{
    stand *s = *state;
    fm_source_close(s->source);
    return 0;
}

static void lay_out_weights(stand *s, fm_dtype act)
{
    fm_source_types       types = {s->source, act};
    const fm_shard        whole = fm_shard_whole(&s->config);
    const fm_weights_want want  = {
         .shard = &whole, .act = act, .dtype_of = fm_source_dtype_of, .ctx = &types};
    fm_slab slab = {0};
    assert_int_equal(fm_weights_layout(&s->weights, &s->config, &want, &slab), FM_OK);
    fm_weights_fini(&s->weights);
    s->slab = aligned_alloc(64, fm_round_up(slab.used, 64));
    slab    = (fm_slab){.base = s->slab, .size = slab.used};
    assert_int_equal(fm_weights_layout(&s->weights, &s->config, &want, &slab), FM_OK);
    assert_int_equal(fm_weights_fill(&s->weights, s->source, 1, 0), FM_OK);
}

/* A text's pages lie backwards in the pool. */
static void deal_pages(stand *s, int page_size)
{
    s->pages    = (LONGEST + page_size - 1) / page_size;
    const int n = N_TEXT * s->pages;
    s->page     = calloc((size_t)n, sizeof *s->page);
    for (int i = 0; i < n; i++) s->page[i] = n - 1 - i;
}

/* Keys of CHUNK rows of a text at a time. */
static void store_text(stand *s, int text)
{
    fm_run      *r     = s->run;
    const size_t width = (size_t)r->act.ckv.width;
    int32_t      pos[CHUNK];
    for (int at = 0; at < text_len[text]; at += CHUNK) {
        const int left = text_len[text] - at, n = left < CHUNK ? left : CHUNK;
        fm_span   span = {.n_row = n, .pos0 = at, .page = s->page + text * s->pages};
        fm_batch  b    = {.n_row = n, .n_span = 1, .pos = pos, .span = &span};
        for (int i = 0; i < n; i++) pos[i] = at + i;
        for (size_t i = 0; i < (size_t)n * width; i++)
            r->act.ckv.data[i] =
                (float)(int32_t)fm_rng_u32(10 + (uint64_t)text, (size_t)at * width + i) * 0x1p-30f;
        fm_run_start(r, &b);
        fm_store_kv(r, 0, r->act.ckv, s->weights.layer[0].attn.kv_norm);
        assert_int_equal(fm_run_finish(r), FM_OK);
    }
}

static void open_run(stand *s, fm_dtype act, int page_size, int n_thread)
{
    lay_out_weights(s, act);
    deal_pages(s, page_size);
    fm_run_limits lim = {.max_rows    = MAX_ROWS,
                               .max_out     = 1,
                               .max_context = LONGEST,
                               .page_size   = page_size,
                               .n_page      = N_TEXT * s->pages,
                               .n_thread    = n_thread,
                               .n_lane      = 1};
    fm_model_declare(&fm_model_deepseek, &s->config, &s->weights.shard, act, &lim);
    assert_int_equal(fm_run_create_cpu(&s->run, &s->weights, &lim, fm_ranks_self(&s->self)), FM_OK);
    for (int i = 0; i < N_TEXT; i++) store_text(s, i);
}

static void close_run(stand *s)
{
    fm_run_destroy(s->run);
    fm_weights_fini(&s->weights);
    free(s->slab);
    free(s->page);
}

/* The query of a position, the same in whichever row it stands. */
static void put_query(stand *s, int row, int text, int pos)
{
    const fm_act q = s->run->act.q;
    for (int i = 0; i < q.width; i++) {
        const uint64_t at = (uint64_t)(pos * q.width + i);
        const float    x  = (float)(int32_t)fm_rng_u32(20 + (uint64_t)text, at) * 0x1p-29f;
        const size_t   to = (size_t)row * (size_t)q.stride + (size_t)i;
        if (s->weights.act == FM_F32) ((float *)q.data)[to] = x;
        else ((fm_bf16 *)q.data)[to] = fm_bf16_of_f32(x);
    }
}

/* o of spans [first, first+n) of `wanted`, as floats behind each other. */
static int attend(stand *s, int first, int n, fm_form form, float *o)
{
    fm_run *r = s->run;
    fm_span span[N_SPAN];
    int32_t pos[MAX_ROWS];
    int     rows = 0;
    for (int k = 0; k < n; k++) {
        const int text = wanted[first + k].text;
        span[k] = (fm_span){.row0 = rows, .n_row = wanted[first + k].n_row, .form = form,
                            .pos0 = wanted[first + k].pos0, .page = s->page + text * s->pages};
        for (int i = 0; i < span[k].n_row; i++, rows++) {
            pos[rows] = span[k].pos0 + i;
            put_query(s, rows, text, pos[rows]);
        }
    }
    fm_batch b = {.n_row = rows, .n_span = n, .pos = pos, .span = span};
    fm_run_start(r, &b);
    fm_attend(r, r->act.o, r->act.q, 0, &s->weights.layer[0].attn);
    assert_int_equal(fm_run_finish(r), FM_OK);
    for (int i = 0; i < rows * HEADS * V_DIM; i++) {
        const int at = i / (HEADS * V_DIM) * r->act.o.stride + i % (HEADS * V_DIM);
        o[i] = s->weights.act == FM_F32 ? ((const float *)r->act.o.data)[at]
                                        : fm_f32_of_bf16(((const fm_bf16 *)r->act.o.data)[at]);
    }
    return rows * HEADS * V_DIM;
}

static float generated[MAX_ROWS * HEADS * V_DIM], other[MAX_ROWS * HEADS * V_DIM];

static void check_forms(stand *s, fm_dtype act, double tolerance)
{
    open_run(s, act, 16, 2);
    const int n = attend(s, 0, N_SPAN, FM_FORM_GENERATED, generated);
    attend(s, 0, N_SPAN, FM_FORM_PROMPT, other);
    double most = 0, apart = 0;
    for (int i = 0; i < n; i++) {
        most  = fmax(most, fabs(other[i]));
        apart = fmax(apart, fabs(generated[i] - other[i]));
    }
    close_run(s);
    assert_true(most > 0.01); /* there is something to compare */
    if (!(apart <= tolerance * most)) fail_msg("act=%d: %g of %g apart", act, apart, most);
}

static void absorbed_says_what_expanded_says(void **state)
{
    check_forms(*state, FM_F32, 1e-5);
    check_forms(*state, FM_BF16, 0.03);
}

static void same_bits(stand *s, fm_dtype act, int page_size, int n_thread, const float *want)
{
    open_run(s, act, page_size, n_thread);
    const int n = attend(s, 0, N_SPAN, FM_FORM_GENERATED, other);
    assert_memory_equal(want, other, (size_t)n * sizeof *want);
    for (int k = 0, at = 0; k < N_SPAN; k++) { /* each span alone */
        const int m = attend(s, k, 1, FM_FORM_GENERATED, other);
        assert_memory_equal(want + at, other, (size_t)m * sizeof *want);
        at += m;
    }
    close_run(s);
}

static void bits_do_not_depend_on_pages_threads_or_company(void **state)
{
    static const int page_size[] = {1, 3, 16, 64};
    for (int a = 0; a < 2; a++) {
        const fm_dtype act = a ? FM_F32 : FM_BF16;
        open_run(*state, act, 16, 1);
        attend(*state, 0, N_SPAN, FM_FORM_GENERATED, generated);
        close_run(*state);
        for (int i = 0; i < 4; i++) same_bits(*state, act, page_size[i], 1 + i % 3, generated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absorbed_says_what_expanded_says),
        cmocka_unit_test(bits_do_not_depend_on_pages_threads_or_company),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
