/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tune/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { MOST_OUTPUT = 8 << 20, CANNOT_START = 127 };
static const double grace = 5.0; /* seconds between SIGTERM and SIGKILL */

/* ---- in the child ---- */

/* Part `slot` of the CPUs this process may use; fewer CPUs than slots are shared. */
static void take_cpus(const fm_process_place *place)
{
    cpu_set_t all, mine;
    if (place->n_slot <= 1 || sched_getaffinity(0, sizeof all, &all) != 0) return;
    const int n    = CPU_COUNT(&all);
    int       from = place->slot * n / place->n_slot, to = (place->slot + 1) * n / place->n_slot;
    if (from == to) to = from + 1;
    CPU_ZERO(&mine);
    for (int cpu = 0, k = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            if (k >= from && k < to) CPU_SET(cpu, &mine);
            k++;
        }
    (void)sched_setaffinity(0, sizeof mine, &mine);
}

static void take_gpus(const fm_process_place *place)
{
    char   list[512];
    size_t n = 0;
    if (place->gpus <= 0) return;
    for (int i = 0; i < place->gpus && n + 16 < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%d", i ? "," : "",
                              place->slot * place->gpus + i);
    setenv("CUDA_VISIBLE_DEVICES", list, 1);
}

__attribute__((noreturn)) static void become(char *const *argv, int out, pid_t parent,
                                             const fm_process_place *place)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(CANNOT_START);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    take_cpus(place);
    take_gpus(place);
    execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(CANNOT_START);
}

/* ---- here ---- */

fm_status fm_process_start(fm_process *p, char *const *argv, const fm_process_place *place,
                           double limit)
{
    int         pipe_fd[2];
    const pid_t me = getpid();
    *p             = (fm_process){.fd = -1, .limit = limit, .began = fm_now()};
    if (pipe2(pipe_fd, O_CLOEXEC) != 0) return fm_fail(FM_E_IO, "pipe: %s", strerror(errno));
    p->pid = fork();
    if (p->pid == 0) become(argv, pipe_fd[1], me, place);
    close(pipe_fd[1]);
    if (p->pid < 0) {
        p->pid = 0;
        close(pipe_fd[0]);
        return fm_fail(FM_E_IO, "fork: %s", strerror(errno));
    }
    setpgid(p->pid, p->pid); /* here and in the child: either may run first */
    p->fd = pipe_fd[0];
    fcntl(p->fd, F_SETFL, O_NONBLOCK);
    return FM_OK;
}

static void keep_recent(fm_str *s)
{
    if (s->len <= MOST_OUTPUT) return;
    const size_t drop = s->len - MOST_OUTPUT / 2;
    memmove(s->text, s->text + drop, s->len - drop + 1);
    s->len -= drop;
}

static void read_output(fm_process *p)
{
    char    block[65536];
    ssize_t n = -1;
    while (p->fd >= 0 && (n = read(p->fd, block, sizeof block)) > 0) {
        fm_str_add(&p->output, block, (size_t)n);
        keep_recent(&p->output);
    }
    if (p->fd >= 0 && (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))) {
        close(p->fd);
        p->fd = -1;
    }
}

static void watch_time(fm_process *p)
{
    const double now = fm_now();
    if (p->limit > 0 && now - p->began > p->limit && p->end == FM_END_NONE) {
        p->end = FM_END_TIME;
        fm_process_stop(p);
    }
    if (p->told > 0 && now - p->told > grace) kill(-p->pid, SIGKILL);
}

int fm_process_step(fm_process *p)
{
    read_output(p);
    if (!p->pid) return 1;
    watch_time(p);
    if (waitpid(p->pid, &p->status, WNOHANG) != p->pid) return 0;
    p->seconds = fm_now() - p->began;
    kill(-p->pid, SIGKILL); /* what it left behind */
    read_output(p);
    p->pid = 0;
    return 1;
}

void fm_process_wait(const fm_process *p, int n, double seconds)
{
    struct pollfd fds[64];
    nfds_t        n_fd = 0;
    for (int i = 0; i < n && n_fd < 64; i++)
        if (p[i].fd >= 0) fds[n_fd++] = (struct pollfd){.fd = p[i].fd, .events = POLLIN};
    (void)poll(fds, n_fd, (int)(seconds * 1000));
    if (!n_fd) return;
    /* Output that comes in drops is not worth a wake-up each. */
    nanosleep(&(struct timespec){.tv_nsec = 2 * 1000 * 1000}, NULL);
}

void fm_process_stop(fm_process *p)
{
    if (!p->pid || p->told > 0) return;
    if (p->end == FM_END_NONE) p->end = FM_END_ASKED;
    p->told = fm_now();
    kill(-p->pid, SIGTERM);
}

void fm_process_fini(fm_process *p)
{
    if (p->pid) {
        kill(-p->pid, SIGKILL);
        waitpid(p->pid, &p->status, 0);
    }
    if (p->fd >= 0) close(p->fd);
    fm_str_fini(&p->output);
    *p = (fm_process){.fd = -1};
}

/* Where the last line with something in it begins, before *to, where it ends. */
static size_t last_line(const char *text, size_t *to)
{
    while (*to && strchr(" \t\r\n", text[*to - 1])) --*to;
    size_t from = *to;
    while (from && text[from - 1] != '\n') from--;
    return from;
}

/* The last line of the output, as printable ASCII; argp's hint behind a complaint is passed over.
 */
static void add_last_line(const fm_process *p, char *out, size_t size)
{
    static const char hint[] = "Try `";
    const char       *text   = p->output.text;
    size_t            to = p->output.len, from = last_line(text, &to), n = strlen(out);
    if (from && to - from >= sizeof hint - 1 && !memcmp(text + from, hint, sizeof hint - 1)) {
        to   = from;
        from = last_line(text, &to);
    }
    if (from < to && n + 3 < size) {
        out[n++] = ':';
        out[n++] = ' ';
    }
    for (; from < to && n + 1 < size; from++) {
        const char c = text[from];
        out[n++]     = c >= ' ' && c < 127 ? c : '?';
    }
    out[n] = 0;
}

void fm_process_why(const fm_process *p, char *out, size_t size)
{
    *out = 0;
    if (p->end == FM_END_TIME) {
        snprintf(out, size, "time limit of %.6g s", p->limit);
        return;
    }
    if (WIFEXITED(p->status) && WEXITSTATUS(p->status) == 0) return;
    if (WIFEXITED(p->status))
        snprintf(out, size, "exit status %d", WEXITSTATUS(p->status));
    else
        snprintf(out, size, "killed by signal %d%s", WTERMSIG(p->status),
                 WTERMSIG(p->status) == SIGKILL ? " (out of memory?)" : "");
    add_last_line(p, out, size);
}
