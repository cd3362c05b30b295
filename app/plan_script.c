/* SPDX-License-Identifier: Apache-2.0 */
/* A layout as the words that run it, and as a job script. */
#include <string.h>
#include <unistd.h>

#include "client_flags.h"
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

/* What was given, less the sizes. */
static void add_given(fm_word_list *l, const fm_word_list *given)
{
    for (int i = 0; i < given->n; i++) {
        const char *w = given->word[i];
        if (!is_size(w))
            fm_word_add(l, w);
        else if (!strchr(w, '=') && !fm_word_is_option(w, "enable-dp-attention"))
            i++;
    }
}

static void add_option(fm_word_list *l, const char *name, const char *value)
{
    fm_word_add(l, name);
    fm_word_add(l, value);
}

/* --dataset is a flag of plan alone. */
static void add_dataset(fm_word_list *l, const fm_plan_command *c)
{
    const char *what = c->options.dataset;
    if (!what || !*what) return;
    add_option(l, access(what, R_OK) == 0 ? "--dataset-path" : "--dataset-name", what);
}

static void add_sizes(fm_word_list *l, const fm_rank_sizes *s)
{
    add_number(l, "tp-size", s->tp, 1);
    add_number(l, "pp-size", s->pp, 1);
    add_number(l, "dp-size", s->dp, 1);
    add_number(l, "ep-size", s->ep, 1);
    if (s->dp_attention) fm_word_add(l, "--enable-dp-attention");
}

static void make_words(fm_word_list *l, const fm_plan_command *c, const fm_forecast *f)
{
    const int    online = fm_plan_is_online(c);
    fm_word_list server = {0}, client = {0};
    if (online) fm_divide_flags(&server, &client, &c->given);
    fm_word_add(l, "fathom");
    fm_word_add(l, online ? "serve" : "bench");
    add_given(l, online ? &server : &c->given);
    if (!online) add_dataset(l, c);
    if (!fm_word_has_option(&c->given, "model-path") && !fm_word_has_option(&c->given, "model"))
        add_option(l, "--model-path", c->engine->model_path);
    add_sizes(l, &f->size);
    fm_word_list_fini(&server);
    fm_word_list_fini(&client);
}

void fm_plan_client_words(fm_str *out, const fm_plan_command *c)
{
    fm_word_list l = {0}, server = {0}, client = {0};
    fm_str       url = {0};
    fm_divide_flags(&server, &client, &c->given);
    fm_str_printf(&url, "http://127.0.0.1:%lld", (long long)c->online.port);
    fm_word_add(&l, "fathom");
    fm_word_add(&l, "bench");
    add_option(&l, "--base-url", url.text);
    add_given(&l, &client);
    add_dataset(&l, c);
    if (c->options.users) add_number(&l, "max-concurrency", (int)c->options.users, 0);
    if (!fm_word_has_option(&client, "num-prompts")) add_number(&l, "num-prompts", c->n_request, 0);
    fm_words_quote(out, l.word);
    fm_str_fini(&url);
    fm_word_list_fini(&l);
    fm_word_list_fini(&server);
    fm_word_list_fini(&client);
}

static int per_node(const fm_plan_command *c, const fm_forecast *f)
{
    return f->n_rank < c->cluster.per_node ? f->n_rank : c->cluster.per_node;
}

/* Ranks of a CPU divide all that the plan counts with; one of a GPU needs a few. */
static int cpus_of_rank(const fm_plan_command *c, int per)
{
    const int all = c->tuned.is_gpu ? 8 * per : c->tuned.n_thread;
    return all / per > 0 ? all / per : 1;
}

/* On this machine fathom starts its ranks itself; elsewhere they divide the CPUs of their host,
 * which mpirun would not give them all. */
void fm_plan_words(fm_str *out, const fm_plan_command *c, const fm_forecast *f)
{
    fm_word_list l = {0};
    make_words(&l, c, f);
    if (f->n_node > 1 || (f->n_rank > 1 && !c->is_here))
        fm_str_printf(out, "mpirun -np %d --map-by ppr:%d:node --bind-to none ", f->n_rank,
                      per_node(c, f));
    fm_words_quote(out, l.word);
    fm_word_list_fini(&l);
}

void fm_plan_script(fm_str *out, const fm_plan_command *c, const fm_forecast *f)
{
    fm_word_list l    = {0};
    fm_str       name = {0}, words = {0}, gpus = {0};
    const int    per = per_node(c, f), gpu = c->tuned.is_gpu, cpus = cpus_of_rank(c, per);
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
                  f->throughput, f->throughput * f->error, f->n_node, per * cpus, per,
                  gpus.text ? gpus.text : "");
    fm_str_printf(out,
                  "#SBATCH --job-name=fathom\n#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=%d\n"
                  "#SBATCH --cpus-per-task=%d\n",
                  f->n_node, per, cpus);
    if (gpu) fm_str_printf(out, "#SBATCH --gpus-per-node=%d\n", per);
    fm_str_puts(out, "#SBATCH --exclusive\n#SBATCH --time=00:30:00\n");
    if (fm_plan_is_online(c)) {
        fm_str_puts(out, "\n# A server.  What measures it, on its first node:\n#     ");
        fm_plan_client_words(out, c);
        fm_str_puts(out, "\n");
    }
    fm_str_printf(
        out,
        "set -eu\n"
        "cd \"${PBS_O_WORKDIR:-${SLURM_SUBMIT_DIR:-.}}\"\n"
        "FATHOM=${FATHOM:-fathom}\n"
        "run=(mpirun -np %d --map-by ppr:%d:node --bind-to none)\n"
        "[ -z \"${PBS_NODEFILE:-}\" ] || run+=(--host \"$(sort -u \"$PBS_NODEFILE\" | sed "
        "'s/$/:%d/' | paste -sd,)\")\n"
        "exec \"${run[@]}\" \"$FATHOM\" %s\n",
        f->n_rank, per, per, words.text);
    fm_word_list_fini(&l);
    fm_str_fini(&name);
    fm_str_fini(&words);
    fm_str_fini(&gpus);
}
