/* SPDX-License-Identifier: Apache-2.0 */
/* A layout as the words that run it, and as a job script. */
#include <string.h>

#include "plan.h"
#include "tune/words.h"

static const char *const size_options[] = {"tp-size",
                                           "tp",
                                           "tensor-parallel-size",
                                           "pp-size",
                                           "pp",
                                           "pipeline-parallel-size",
                                           "dp-size",
                                           "dp",
                                           "data-parallel-size",
                                           "ep-size",
                                           "ep",
                                           "expert-parallel-size",
                                           "enable-dp-attention"};

static int is_size(const char *word)
{
    for (size_t i = 0; i < sizeof size_options / sizeof *size_options; i++)
        if (fm_word_is_option(word, size_options[i])) return 1;
    return 0;
}

static void add_number(fm_word_list *l, const char *name, int n, int usual)
{
    fm_str text = {0};
    if (n == usual) return;
    fm_str_printf(&text, "--%s=%d", name, n);
    fm_word_add(l, text.text);
    fm_str_fini(&text);
}

/* What was given, less the sizes, then the sizes of the layout. */
static void make_words(fm_word_list *l, const fm_plan_command *c, const fm_forecast *f)
{
    fm_word_add(l, "fathom");
    fm_word_add(l, "bench");
    for (int i = 0; i < c->given.n; i++) {
        const char *w = c->given.word[i];
        if (!is_size(w)) {
            fm_word_add(l, w);
            continue;
        }
        if (!strchr(w, '=') && !fm_word_is_option(w, "enable-dp-attention")) i++;
    }
    if (!fm_word_has_option(&c->given, "model-path") && !fm_word_has_option(&c->given, "model")) {
        fm_word_add(l, "--model-path");
        fm_word_add(l, c->engine->model_path);
    }
    add_number(l, "tp-size", f->size.tp, 1);
    add_number(l, "pp-size", f->size.pp, 1);
    add_number(l, "dp-size", f->size.dp, 1);
    add_number(l, "ep-size", f->size.ep, 1);
    if (f->size.dp_attention) fm_word_add(l, "--enable-dp-attention");
}

static int per_node(const fm_plan_command *c, const fm_forecast *f)
{
    return f->n_rank < c->cluster.per_node ? f->n_rank : c->cluster.per_node;
}

/* On this machine fathom starts its ranks itself. */
void fm_plan_words(fm_str *out, const fm_plan_command *c, const fm_forecast *f)
{
    fm_word_list l = {0};
    make_words(&l, c, f);
    if (f->n_node > 1 || (f->n_rank > 1 && !c->is_here))
        fm_str_printf(out, "mpirun -np %d --map-by ppr:%d:node ", f->n_rank, per_node(c, f));
    fm_words_quote(out, l.word);
    fm_word_list_fini(&l);
}

void fm_plan_script(fm_str *out, const fm_plan_command *c, const fm_forecast *f)
{
    fm_word_list l    = {0};
    fm_str       name = {0}, words = {0}, gpus = {0};
    const int    per = per_node(c, f), gpu = c->tuned.is_gpu;
    if (gpu) fm_str_printf(&gpus, ":ngpus=%d", per);
    fm_forecast_name(&name, &f->size);
    make_words(&l, c, f);
    fm_words_quote(&words, l.word + 1); /* the program is $FATHOM */
    fm_str_printf(out,
                  "#!/bin/bash\n"
                  "# %s on %d x %d %s (%s), planned by fathom: %.0f +- %.0f tok/s\n"
                  "#\n#     qsub FILE      or      sbatch FILE\n#\n"
                  "#PBS -N fathom\n#PBS -l select=%d:ncpus=%d:mpiprocs=%d%s\n"
                  "#PBS -l place=scatter:excl\n#PBS -l walltime=00:30:00\n#PBS -j oe\n",
                  c->engine->model_path, f->n_node, per, c->cluster.device, name.text,
                  f->throughput, f->throughput * f->error, f->n_node, per * (gpu ? 8 : 1), per,
                  gpus.text ? gpus.text : "");
    fm_str_printf(out,
                  "#SBATCH --job-name=fathom\n#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=%d\n",
                  f->n_node, per);
    if (gpu) fm_str_printf(out, "#SBATCH --gpus-per-node=%d\n", per);
    fm_str_printf(
        out,
        "#SBATCH --exclusive\n#SBATCH --time=00:30:00\nset -eu\n"
        "cd \"${PBS_O_WORKDIR:-${SLURM_SUBMIT_DIR:-.}}\"\n"
        "FATHOM=${FATHOM:-fathom}\n"
        "run=(mpirun -np %d --map-by ppr:%d:node)\n"
        "[ -z \"${PBS_NODEFILE:-}\" ] || run+=(--host \"$(sort -u \"$PBS_NODEFILE\" | sed "
        "'s/$/:%d/' | paste -sd,)\")\n"
        "exec \"${run[@]}\" \"$FATHOM\" %s\n",
        f->n_rank, per, per, words.text);
    fm_word_list_fini(&l);
    fm_str_fini(&name);
    fm_str_fini(&words);
    fm_str_fini(&gpus);
}
