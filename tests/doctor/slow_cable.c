/* SPDX-License-Identifier: Apache-2.0 */
/* slow_cable SPACE_A DEVICE_A SPACE_B DEVICE_B MICROSECONDS: a cable between two network
 * namespaces (files such as /run/netns/a) through which every frame takes that long, for kernels
 * without netem.  Makes both devices, prints "ready", and carries frames until it is killed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE = 4096, MOST_BYTES = 65600 };

typedef struct {
    double when; /* it is delivered */
    int    bytes;
    char  *data;
} frame;

/* One direction. */
typedef struct {
    int   from, to;
    frame frame[QUEUE]; /* a ring */
    int   head, n;
} way;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void give_up(const char *what)
{
    perror(what);
    exit(1);
}

static int open_device(const char *space, const char *name)
{
    struct ifreq r    = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    const int    into = open(space, O_RDONLY | O_CLOEXEC);
    if (into < 0 || setns(into, CLONE_NEWNET) != 0) give_up(space);
    const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &r) != 0) give_up(name);
    close(into);
    return fd;
}

/* A full queue drops frames, as a switch does. */
static void take(way *w, double delay)
{
    static char bytes[MOST_BYTES];
    for (ssize_t n; (n = read(w->from, bytes, sizeof bytes)) > 0;) {
        if (w->n == QUEUE) continue;
        frame *f = &w->frame[(w->head + w->n++) % QUEUE];
        *f       = (frame){now() + delay, (int)n, malloc((size_t)n)};
        if (!f->data) give_up("memory");
        memcpy(f->data, bytes, (size_t)n);
    }
}

static void deliver(way *w)
{
    while (w->n > 0 && w->frame[w->head].when <= now()) {
        frame *f = &w->frame[w->head];
        if (write(w->to, f->data, (size_t)f->bytes) < 0) { /* the device is down: lost */
        }
        free(f->data);
        w->head = (w->head + 1) % QUEUE;
        w->n--;
    }
}

/* Seconds until something is due. */
static double pause_of(const way *a, const way *b)
{
    double       due = 1;
    const double t   = now();
    for (int i = 0; i < 2; i++) {
        const way *w = i ? b : a;
        if (w->n > 0 && w->frame[w->head].when - t < due) due = w->frame[w->head].when - t;
    }
    return due > 0 ? due : 0;
}

int main(int argc, char **argv)
{
    static way there, back;
    if (argc != 6) return 2;
    const double delay = 1e-6 * atof(argv[5]);
    there.from = back.to = open_device(argv[1], argv[2]);
    back.from = there.to = open_device(argv[3], argv[4]);
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        struct pollfd   p[2] = {{there.from, POLLIN, 0}, {back.from, POLLIN, 0}};
        const double    due  = pause_of(&there, &back);
        struct timespec wait = {(time_t)due, (long)(1e9 * (due - (double)(time_t)due))};
        (void)ppoll(p, 2, &wait, NULL);
        take(&there, delay);
        take(&back, delay);
        deliver(&there);
        deliver(&back);
    }
}
