/* SPDX-License-Identifier: Apache-2.0 */
/* fathom COMMAND ...: the table of commands. */
#define _POSIX_C_SOURCE 200809L
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/nearest.h"
#include "base/str.h"
#include "base/utf8.h"
#include "blas_threads.h"
#include "commands.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
} commands[] = {
    {"bench", fm_cmd_bench,
     "measure offline throughput, as SGLang's bench_offline_throughput does"},
    {"serve", fm_cmd_serve, "answer over HTTP: OpenAI's API, SGLang's, and a page to chat on"},
    {"route", fm_cmd_route, "one address in front of many servers, with failover inside streams"},
    {"eval", fm_cmd_eval, "ask a set of questions and count the right answers"},
    {"run", fm_cmd_run, "answer one prompt, or chat in the terminal"},
    {"plan", fm_cmd_plan, "which layout of a cluster is the best, before anything runs"},
    {"tune", fm_cmd_tune, "search for the best options of fathom or of any program"},
    {"ablate", fm_cmd_ablate, "what each feature brings, and that none changes an answer"},
    {"cache", fm_cmd_cache, "list, check and prune a directory of stored prefixes"},
    {"convert", fm_cmd_convert, "write a checkpoint with 4-bit or 8-bit weights"},
    {"doctor", fm_cmd_doctor, "measure hosts, links and GPUs, and name the slow ones"},
    {"verify", fm_cmd_verify, "compare a model or a tokenizer with golden data"},
    {"trace", fm_cmd_trace, "say where the time of a recorded run went"},
    {"scf", fm_cmd_scf, "Hartree-Fock and DFT energies from an NWChem deck"},
};
enum { N_COMMAND = sizeof commands / sizeof commands[0] };

/* What the user gave, or a machine too small for it: 2.  The rest: 1. */
static int exit_status(fm_status why)
{
    switch (why) {
    case FM_OK: return FM_EXIT_OK;
    case FM_E_ARG:
    case FM_E_OOM:
    case FM_E_IO:
    case FM_E_FORMAT:
    case FM_E_NOSUP: return FM_EXIT_INPUT;
    default: return FM_EXIT_FAILED;
    }
}

int fm_complain(const char *command, fm_status why)
{
    fflush(stdout);
    /* Rank 0 says it for all; a launcher would end it at another's failure, before it has. */
    if (!*fm_why()) return FM_EXIT_OK;
    fm_str line = {0};
    fm_str_printf(&line, "fathom %s: %s\n", command, fm_why());
    fm_log_lines(line.text);
    fm_str_fini(&line);
    return exit_status(why);
}

static void print_help(FILE *to)
{
    fprintf(to, "Usage: fathom COMMAND [OPTION...]\n"
                "Runs DeepSeek models, and Hartree-Fock and DFT calculations.\n\n");
    for (int i = 0; i < N_COMMAND; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].about);
    fprintf(to, "\n  fathom help COMMAND      the options of a command\n"
                "  fathom --version         version and what this build has\n");
}

/* A result that could not be printed is none, however the program ends: --help
 * and --version of a command leave through argp. */
static void check_printed(void)
{
    errno              = 0;
    const int   failed = fflush(stdout) != 0 || ferror(stdout);
    const char *why    = errno ? strerror(errno) : "not all of it could be written";
    if (!failed) return;
    fprintf(stderr, "fathom: standard output: %s\n", why);
    _exit(exit_status(FM_E_IO));
}

/* Beyond `ulimit -f` a write fails, as on a full disk, and does not end the program unsaid.  Unlike
 * SIG_IGN a handler is not inherited by programs that are executed. */
static void let_write_fail(int signal_number) { (void)signal_number; }

static void version_hook(FILE *to, struct argp_state *state)
{
    (void)to;
    (void)state;
    fm_print_version();
}

/* NULL: there is no such command. */
static int (*find_command(const char *name))(int argc, char **argv)
{
    for (int i = 0; i < N_COMMAND; i++)
        if (!strcmp(name, commands[i].name)) return commands[i].run;
    return NULL;
}

static int is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return !strcmp(word, a) || !strcmp(word, b) || !strcmp(word, c);
}

static int complain_about(const char *word)
{
    fm_nearest like = {.word = word};
    for (int i = 0; *word && i < N_COMMAND; i++) fm_nearest_offer(&like, commands[i].name);
    if (like.name)
        fprintf(stderr, "fathom: there is no command \"%s\"; is \"%s\" meant?\n", word, like.name);
    else if (*word)
        fprintf(stderr, "fathom: there is no command \"%s\"\n", word);
    if (!like.name) print_help(stderr);
    return FM_EXIT_INPUT;
}

/* Where a standard stream is closed, no file that is opened later may become it.  /dev/null of the
 * wrong direction takes its place, with which reading and writing fail as before. */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0) return;
}

/* Words go into reports, which are UTF-8.  0, or where the first byte that is not, counted from 1. */
static size_t foreign_byte(const char *word)
{
    const size_t n = strlen(word), valid = fm_utf8_prefix(word, n);
    return valid < n ? valid + 1 : 0;
}

static int has_foreign_words(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const size_t at = foreign_byte(argv[i]);
        if (!at) continue;
        fprintf(stderr, "fathom%s%s: word %d of the command line is not UTF-8 at byte %zu\n",
                i > 1 ? " " : "", i > 1 ? argv[1] : "", i, at);
        return 1;
    }
    return 0;
}

/* fathom help COMMAND */
static int help_on(char *name)
{
    int (*const run)(int argc, char **argv) = find_command(name);
    char *words[]                           = {name, "--help", NULL};
    return run ? run(2, words) : complain_about(name);
}

int main(int argc, char **argv)
{
    occupy_closed_streams();
    fm_blas_threads_avoid(argv);
    argp_program_version_hook = version_hook;
    atexit(check_printed);
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = let_write_fail}, NULL);

    if (has_foreign_words(argc, argv)) return FM_EXIT_INPUT;
    const char *word = argc > 1 ? argv[1] : "";
    int (*const run)(int argc, char **argv) = find_command(word);
    if (run) return run(argc - 1, argv + 1);
    if (is_one_of(word, "--version", "-V", "version")) {
        fm_print_version();
        return FM_EXIT_OK;
    }
    if (!strcmp(word, "--print-options")) { /* for the completion of shells */
        for (int i = 0; i < N_COMMAND; i++) printf("%s\t%s\n", commands[i].name, commands[i].about);
        return FM_EXIT_OK;
    }
    if (!strcmp(word, "help") && argc > 2) return help_on(argv[2]);
    if (!strcmp(word, "help") || is_one_of(word, "--help", "-h", "-?")) {
        print_help(stdout);
        return FM_EXIT_OK;
    }
    return complain_about(word);
}
