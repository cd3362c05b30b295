/* SPDX-License-Identifier: Apache-2.0 */
/* One trial of `tune serve`: a server on a free port and a client that measures it, both in the
 * process group of the trial. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "tune.h"

static void add_self(fm_word_list *l, const char *command)
{
    char          path[PATH_MAX];
    const ssize_t n     = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    fm_word_add(l, path);
    fm_word_add(l, command);
}

/* `err`: where its stderr goes; -1: where ours goes. */
static pid_t start(const fm_word_list *l, int err)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (pid) return pid;
    if (err >= 0) dup2(err, STDERR_FILENO);
    execv(l->word[0], l->word);
    _exit(127);
}

/* The address in "listening on URL"; other lines are passed on.  0: the server has ended. */
static int await_address(FILE *from, char *url, size_t size)
{
    static const char mark[] = "listening on ";
    char              line[4096];
    while (fgets(line, sizeof line, from)) {
        const char *at = strstr(line, mark);
        fputs(line, stderr);
        if (!at) continue;
        snprintf(url, size, "%.*s", (int)strcspn(at + sizeof mark - 1, " \r\n"),
                 at + sizeof mark - 1);
        return 1;
    }
    return 0;
}

static int status_of(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : FM_EXIT_FAILED;
}

static int measure(const char *url, char *const *word, int n)
{
    fm_word_list client = {0};
    add_self(&client, "bench");
    fm_word_add(&client, "--base-url");
    fm_word_add(&client, url);
    fm_word_add_all(&client, word, n);
    const pid_t pid = start(&client, -1);
    fm_word_list_fini(&client);
    return pid > 0 ? status_of(pid) : FM_EXIT_FAILED;
}

int fm_tune_serve_trial(char *const *word, int n)
{
    int          n_server = 0, pipe_fd[2];
    char         url[256];
    fm_word_list server = {0};
    while (n_server < n && strcmp(word[n_server], "--")) n_server++;
    if (n_server == n || pipe2(pipe_fd, O_CLOEXEC) != 0) return FM_EXIT_INPUT;
    add_self(&server, "serve");
    fm_word_add_all(&server, word, n_server);
    fm_word_add(&server, "--port=0");
    const pid_t pid = start(&server, pipe_fd[1]);
    fm_word_list_fini(&server);
    close(pipe_fd[1]);
    if (pid < 0) return FM_EXIT_FAILED;
    FILE     *from    = fdopen(pipe_fd[0], "r");
    const int listens = from && await_address(from, url, sizeof url);
    const int status  = listens ? measure(url, word + n_server + 1, n - n_server - 1) : FM_EXIT_OK;
    kill(pid, SIGTERM);
    const int served = status_of(pid);
    if (from) fclose(from);
    if (status || served) return status ? status : served;
    return listens ? FM_EXIT_OK : FM_EXIT_FAILED;
}
