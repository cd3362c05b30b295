/* SPDX-License-Identifier: Apache-2.0 */
/* The job's flags as the dataset's options; the same offline and online. */
#include <stdio.h>
#include <string.h>

#include "bench.h"

/* Without a dataset: what answers in about a minute on two cores. */
enum { DEFAULT_PROMPTS = 32, SGLANG_PROMPTS = 1000 };

const char *fm_bench_dataset_name(const fm_bench_options *b)
{
    if (b->dataset_name) return b->dataset_name;
    return b->dataset_path ? "sharegpt" : "synthetic";
}

static int prompt_count(const fm_bench_options *b)
{
    if (b->num_prompts > 0) return (int)b->num_prompts;
    return b->dataset_name || b->dataset_path ? SGLANG_PROMPTS : DEFAULT_PROMPTS;
}

fm_data_options fm_bench_data_options(const fm_bench_options *b)
{
    fm_data_options d      = fm_data_default();
    d.name                 = fm_bench_dataset_name(b);
    d.path                 = b->dataset_path;
    d.n_prompt             = prompt_count(b);
    d.seed                 = (uint64_t)b->seed;
    d.sharegpt_output_len  = (int)b->sharegpt_output_len;
    d.sharegpt_context_len = (int)b->sharegpt_context_len;
    d.prompt_suffix        = b->prompt_suffix;
    d.apply_chat           = b->apply_chat_template;
    d.random_input_len     = (int)b->random_input_len;
    d.random_output_len    = (int)b->random_output_len;
    d.random_range_ratio   = b->random_range_ratio;
    d.gsp_groups           = (int)b->gsp_num_groups;
    d.gsp_per_group        = (int)b->gsp_prompts_per_group;
    d.gsp_system_len       = (int)b->gsp_system_prompt_len;
    d.gsp_question_len     = (int)b->gsp_question_len;
    d.gsp_output_len       = (int)b->gsp_output_len;
    return d;
}

/* The groups of a shared prefix are counted by themselves. */
int fm_bench_asked(const fm_bench_options *b)
{
    const int is_gsp = !strcmp(fm_bench_dataset_name(b), "generated-shared-prefix");
    return is_gsp ? (int)(b->gsp_num_groups * b->gsp_prompts_per_group) : prompt_count(b);
}

void fm_bench_print_changes(const fm_bench_changes *c, int n_row)
{
    if (n_row < c->n_asked)
        printf("%-40s %d of %d\n", "Requests in the dataset:", n_row, c->n_asked);
    if (c->n_cut_context)
        printf("%-40s %d (%lld tokens)\n", "Requests cut to the context:", c->n_cut_context,
               (long long)c->context);
    if (c->n_cut_pool)
        printf("%-40s %d (%lld tokens)\n", "Requests cut to the KV pool:", c->n_cut_pool,
               (long long)c->pool);
}

void fm_bench_add_changes(json_t *to, const fm_bench_changes *c)
{
    json_object_set_new(to, "requested_prompts", json_integer(c->n_asked));
    json_object_set_new(to, "requests_cut_to_context", json_integer(c->n_cut_context));
    json_object_set_new(to, "requests_cut_to_pool", json_integer(c->n_cut_pool));
}
