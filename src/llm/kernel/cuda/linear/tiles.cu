/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of our dense kernels that are compiled, and the choice among them: as many rows of x
 * as there are, up to 32, or fewer where every thread block then has a multiprocessor to itself;
 * as few rows of w as it takes to give every multiprocessor two thread blocks, but (E4M3) no second
 * round of them.  None of this moves a sum. */
#include "llm/kernel/cuda/linear/chain.cuh"
#include "llm/kernel/cuda/linear/e4m3.cuh"
#include "llm/kernel/cuda/linear/mma.cuh"
#include "llm/kernel/cuda/variants.h"

template <class S> struct linear_kernel {
    static auto kernel()
    {
        if constexpr (S::KIND == W_E4M3)
            return linear_e4m3<S>;
        else if constexpr (S::KIND == W_BF16_MMA)
            return linear_mma<S>;
        else
            return linear_chain<S>;
    }
    static cudaError_t init() { return fm_allow_shared(kernel(), S::BYTES); }
    static dim3        grid_of(const fm_cuda_linear_args &a)
    {
        return dim3((unsigned)(a.n + S::ROWS - 1) / S::ROWS, (unsigned)(a.m + S::NT - 1) / S::NT,
                    (unsigned)a.n_batch);
    }
    static int64_t blocks(const fm_cuda_linear_args &a)
    {
        const dim3 g = grid_of(a);
        return (int64_t)g.x * g.y * g.z;
    }
    /* All thread blocks run at once. */
    static bool is_one_round(const fm_cuda_linear_args &a)
    {
        const int shared_bytes = 228 << 10, own_bytes = S::BYTES + (1 << 10);
        return blocks(a) <= shared_bytes / own_bytes * a.n_sm;
    }
    static void launch(const fm_cuda_linear_args &a, fm_stream stream)
    {
        const dim3 grid = grid_of(a);
        if constexpr (S::KIND == W_BF16_MMA)
            launch_list({{a, a}, (int)grid.x}, grid, stream);
        else
            FM_LAUNCH_EARLY(kernel(), grid, S::THREADS, S::BYTES, stream, a);
    }
    static void launch_two(const fm_cuda_linear_args &a, const fm_cuda_linear_args &b,
                           fm_stream stream)
    {
        dim3      grid    = grid_of(a);
        const int n_first = (int)grid.x;
        grid.x += grid_of(b).x;
        launch_list({{a, b}, n_first}, grid, stream);
    }
    static void launch_list(const linear_list &list, dim3 grid, fm_stream stream)
    {
        FM_LAUNCH_EARLY(kernel(), grid, S::THREADS, S::BYTES, stream, list);
    }
};

enum { FEW_BLOCKS = 32 }; /* of a product as small as a router's */

/* middle: 32 rows of w (E4M3 and 32 tokens: 64), two thread blocks for each multiprocessor.
 * narrow, E4M3: half of them; BF16 and 8 tokens: 16 rows, so that all of k = 2048 is asked for before
 * x is there.  wide: fewer readings of x. */
template <weight_kind KIND, int NT> struct linear_choice;

template <> struct linear_choice<W_BF16, 8> {
    using narrow = linear_kernel<linear_shape<W_BF16_MMA, 1, 8, 16>>;
    using middle = linear_kernel<linear_shape<W_BF16_MMA, 2, 8, 10>>;
    using wide   = linear_kernel<linear_shape<W_BF16_MMA, 4, 8, 4>>;
};
template <> struct linear_choice<W_BF16, 16> {
    using middle = linear_kernel<linear_shape<W_BF16_MMA, 2, 16, 8>>;
    using narrow = middle;
    using wide   = linear_kernel<linear_shape<W_BF16_MMA, 4, 16, 5>>;
};
template <> struct linear_choice<W_BF16, 32> {
    using middle = linear_kernel<linear_shape<W_BF16_MMA, 2, 32, 6>>;
    using narrow = middle;
    using wide   = linear_kernel<linear_shape<W_BF16, 4, 32, 4>>;
};
template <> struct linear_choice<W_E4M3, 8> {
    using narrow = linear_kernel<linear_shape<W_E4M3, 1, 8, 6>>;
    using middle = linear_kernel<linear_shape<W_E4M3, 2, 8, 8>>;
    using wide   = linear_kernel<linear_shape<W_E4M3, 4, 8, 7>>;
};
template <> struct linear_choice<W_E4M3, 16> {
    using narrow = linear_kernel<linear_shape<W_E4M3, 1, 16, 4>>;
    using middle = linear_kernel<linear_shape<W_E4M3, 2, 16, 6>>;
    using wide   = linear_kernel<linear_shape<W_E4M3, 4, 16, 6>>;
};
template <> struct linear_choice<W_E4M3, 32> {
    using narrow = linear_kernel<linear_shape<W_E4M3, 2, 32, 4, 256>>;
    using middle = linear_kernel<linear_shape<W_E4M3, 4, 32, 6, 256>>;
    using wide   = linear_kernel<linear_shape<W_E4M3, 4, 32, 5>>;
};
/* Rows of 64 outputs fill the banks; heads give thread blocks enough. */
template <int NT> struct linear_choice<W_BF16_BY_K, NT> {
    using narrow = linear_kernel<linear_shape<W_BF16_BY_K, 4, NT, 3>>;
    using middle = narrow;
    using wide   = narrow;
};

template <weight_kind KIND, int NT> static fm_status init_pair(void)
{
    FM_CUDA((linear_choice<KIND, NT>::narrow::init()));
    FM_CUDA((linear_choice<KIND, NT>::middle::init()));
    FM_CUDA((linear_choice<KIND, NT>::wide::init()));
    return FM_OK;
}

template <weight_kind KIND> static fm_status init_kind(void)
{
    FM_TRY((init_pair<KIND, 8>()));
    FM_TRY((init_pair<KIND, 16>()));
    return init_pair<KIND, 32>();
}

template <weight_kind KIND, int NT> static bool is_for_narrow(const fm_cuda_linear_args &a)
{
    using narrow = typename linear_choice<KIND, NT>::narrow;
    return KIND == W_E4M3 ? narrow::is_one_round(a) : narrow::blocks(a) <= FEW_BLOCKS;
}

template <weight_kind KIND, int NT>
static fm_status launch_pair(const fm_cuda_linear_args &a, fm_stream stream)
{
    using choice = linear_choice<KIND, NT>;
    if (choice::wide::blocks(a) >= 2 * a.n_sm && !fm_cuda_leaves_out(FM_VARIANT_LINEAR_WIDE))
        choice::wide::launch(a, stream);
    else if (is_for_narrow<KIND, NT>(a))
        choice::narrow::launch(a, stream);
    else
        choice::middle::launch(a, stream);
    return fm_cuda_launched("linear");
}

/* Do blocks of NT rows of x find a multiprocessor each?  Then they are better than fewer that each
 * read more rows.  E4M3 weights have prices of their own (linear.c). */
template <weight_kind KIND, int NT> static bool has_room(const fm_cuda_linear_args &a)
{
    return KIND != W_E4M3 && linear_choice<KIND, NT>::middle::blocks(a) <= a.n_sm;
}

template <weight_kind KIND>
static fm_status launch_kind(const fm_cuda_linear_args &a, fm_stream stream)
{
    if (a.m <= 8 || has_room<KIND, 8>(a)) return launch_pair<KIND, 8>(a, stream);
    if (a.m <= 16 || has_room<KIND, 16>(a)) return launch_pair<KIND, 16>(a, stream);
    return launch_pair<KIND, 32>(a, stream);
}

fm_status fm_cuda_linear_init(void)
{
    FM_TRY(init_kind<W_BF16>());
    FM_TRY(init_kind<W_BF16_BY_K>());
    FM_TRY(init_kind<W_E4M3>());
    return fm_cuda_linear_wide_init();
}

static void check(const fm_cuda_linear_args *a)
{
    const int wide = a->scale ? 16 : 8;
    FM_BUG_UNLESS(a->n % 2 == 0 && a->ldy % 2 == 0 && a->y_stride % 2 == 0 && a->n_sm > 0);
    FM_BUG_UNLESS(a->k % wide == 0 && a->ldw % wide == 0 && a->ldx % 8 == 0 &&
                  a->x_stride % 8 == 0);
    FM_BUG_UNLESS(a->w_stride % wide == 0 && a->n_batch >= 1);
    FM_BUG_UNLESS(!a->by_k || (a->n % 8 == 0 && !a->scale));
    FM_BUG_UNLESS(!a->scale || (a->n_batch == 1 && a->scale_row0 % 16 == 0));
    FM_BUG_UNLESS(!a->accumulate || !a->y_bf16);
    FM_BUG_UNLESS(!a->swiglu || (a->n % 32 == 0 && a->n_batch == 1 && !a->by_k && !a->accumulate));
}

template <int NT>
static void launch_two(const fm_cuda_linear_args &a, const fm_cuda_linear_args &b, fm_stream stream)
{
    linear_choice<W_BF16, NT>::middle::launch_two(a, b, stream);
}

fm_status fm_cuda_linear_two(const fm_cuda_linear_args *a, const fm_cuda_linear_args *b,
                             fm_stream stream)
{
    check(a);
    check(b);
    FM_BUG_UNLESS(fm_cuda_linear_suits_two(a, b));
    if (a->m == 0) return FM_OK;
    if (a->m <= 8)
        launch_two<8>(*a, *b, stream);
    else
        launch_two<16>(*a, *b, stream);
    return fm_cuda_launched("linear");
}

fm_status fm_cuda_linear_tiles(const fm_cuda_linear_args *a, fm_stream stream)
{
    check(a);
    if (a->m == 0) return FM_OK;
    if (a->scale) return launch_kind<W_E4M3>(*a, stream);
    if (a->by_k) return launch_kind<W_BF16_BY_K>(*a, stream);
    return launch_kind<W_BF16>(*a, stream);
}
