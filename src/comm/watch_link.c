/* SPDX-License-Identifier: Apache-2.0 */
/* How the watches connect: rank 0 listens, its addresses are sent over the transport, the other
 * ranks try them one after the other. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "comm/watch_internal.h"

enum { CONNECT_MS = 1000 };

/* A caller says hello at once; rank 0 may be busy with others before it answers. */
static const double hello_s = 1, answer_s = 10, all_tries_s = 30;

/* --- rank 0's door --------------------------------------------------------- */

/* A link-local address is valid on its own network segment only. */
static int is_link_local(const struct sockaddr *a)
{
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static int can_use(const struct ifaddrs *i, const char *interface, int want_loopback)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP)) return 0;
    if (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) return 0;
    if (interface && strcmp(i->ifa_name, interface)) return 0;
    return !(i->ifa_flags & IFF_LOOPBACK) == !want_loopback && !is_link_local(i->ifa_addr);
}

static void add_address(fm__door *door, const struct sockaddr *a)
{
    if (door->n_address == FM__DOOR_ADDRESSES) return;
    const int at            = (int)door->n_address++;
    door->address[at].is_v6 = a->sa_family == AF_INET6;
    if (a->sa_family == AF_INET) {
        memcpy(door->address[at].at, &((const struct sockaddr_in *)a)->sin_addr, 4);
        return;
    }
    memcpy(door->address[at].at, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
}

/* Loopback last: from another host it would reach a process there. */
static fm_status list_addresses(fm__door *door, const char *interface)
{
    struct ifaddrs *all;
    if (getifaddrs(&all)) return fm_fail(FM_E_COMM, "network interfaces: %s", strerror(errno));
    for (int loopback = 0; loopback < 2; loopback++)
        for (const struct ifaddrs *i = all; i; i = i->ifa_next)
            if (can_use(i, interface, loopback)) add_address(door, i->ifa_addr);
    freeifaddrs(all);
    if (door->n_address == 0)
        return fm_fail(FM_E_COMM, "no network interface %s with an address",
                       interface ? interface : "");
    return FM_OK;
}

static int listen_on(int family)
{
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    const int               off = 0;
    struct sockaddr_storage any = {.ss_family = (sa_family_t)family};
    if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (struct sockaddr *)&any, sizeof any) == 0 && listen(fd, 512) == 0) return fd;
    close(fd);
    return -1;
}

fm_status fm__watch_listen(fm__watch *w, fm__door *door)
{
    struct sockaddr_storage at;
    socklen_t               n = sizeof at;
    FM_TRY(list_addresses(door, w->plan.interface));
    w->door_fd = listen_on(AF_INET6); /* takes IPv4, too */
    if (w->door_fd < 0) w->door_fd = listen_on(AF_INET);
    if (w->door_fd < 0 || getsockname(w->door_fd, (struct sockaddr *)&at, &n))
        return fm_fail(FM_E_COMM, "rank 0 cannot listen for the others: %s", strerror(errno));
    if (getrandom(&door->cookie, sizeof door->cookie, 0) != sizeof door->cookie)
        return fm_fail(FM_E_COMM, "random numbers: %s", strerror(errno));
    door->port = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                                : ((struct sockaddr_in *)&at)->sin_port);
    return FM_OK;
}

/* --- greetings ------------------------------------------------------------- */

/* One whole frame within a time; strangers may send anything. */
static int read_frame(int fd, fm__frame *f, double seconds)
{
    size_t       n     = 0;
    const double until = fm_now() + seconds;
    while (n < sizeof *f) {
        struct pollfd p    = {.fd = fd, .events = POLLIN};
        const int     left = (int)(1e3 * (until - fm_now()));
        if (left <= 0 || poll(&p, 1, left) <= 0) return -1;
        const ssize_t got = recv(fd, (char *)f + n, sizeof *f - n, MSG_DONTWAIT);
        if (got <= 0) return -1;
        n += (size_t)got;
    }
    return f->magic == FM__FRAME_MAGIC ? 0 : -1;
}

static int greet(fm__watch *w, int fd, uint64_t cookie)
{
    fm__frame hello = fm__watch_frame(w, FM__HELLO, "");
    hello.calls     = cookie;
    return fm__frame_send(fd, &hello);
}

static void adopt(fm__watch *w, int fd, int rank)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fm__watched *l       = &w->link[w->n_link++];
    *l                = (fm__watched){.fd = fd, .rank = rank, .heard = fm_now()};
    l->last.waits_for = -1;
    l->last.rank      = rank;
    strcpy(l->last.doing, "starting");
}

static int is_linked(const fm__watch *w, int rank)
{
    for (int i = 0; i < w->n_link; i++)
        if (w->link[i].rank == rank) return 1;
    return 0;
}

static void welcome(fm__watch *w, int fd, uint64_t cookie)
{
    fm__frame f;
    const int is_ours =
        read_frame(fd, &f, hello_s) == 0 && f.kind == FM__HELLO && f.calls == cookie;
    const int is_rank = is_ours && f.rank > 0 && f.rank < w->plan.n_rank && !is_linked(w, f.rank);
    if (is_rank && greet(w, fd, cookie) == 0)
        adopt(w, fd, f.rank);
    else
        close(fd);
}

static fm_status accept_all(fm__watch *w, uint64_t cookie)
{
    const double until = fm_now() + all_tries_s;
    while (w->n_link < w->plan.n_rank - 1) {
        struct pollfd p = {.fd = w->door_fd, .events = POLLIN};
        poll(&p, 1, 100);
        const int fd = accept4(w->door_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) welcome(w, fd, cookie);
        for (int r = 1; fm_now() > until && r < w->plan.n_rank; r++)
            if (!is_linked(w, r))
                return fm_fail(FM_E_COMM, "rank %d on %s has not connected to rank 0 within %.0f s",
                               r, w->plan.host(w->plan.of, r), all_tries_s);
    }
    close(w->door_fd);
    w->door_fd = -1;
    return FM_OK;
}

/* --- the others ------------------------------------------------------------ */

static socklen_t fill_address(struct sockaddr_storage *to, const fm__door *door, int i)
{
    *to = (struct sockaddr_storage){0};
    if (!door->address[i].is_v6) {
        struct sockaddr_in *a = (struct sockaddr_in *)to;
        a->sin_family         = AF_INET;
        a->sin_port           = htons((uint16_t)door->port);
        memcpy(&a->sin_addr, door->address[i].at, 4);
        return sizeof *a;
    }
    struct sockaddr_in6 *a = (struct sockaddr_in6 *)to;
    a->sin6_family         = AF_INET6;
    a->sin6_port           = htons((uint16_t)door->port);
    memcpy(&a->sin6_addr, door->address[i].at, 16);
    return sizeof *a;
}

static int is_connected(int fd)
{
    struct pollfd p     = {.fd = fd, .events = POLLOUT};
    int           error = 0;
    socklen_t     n     = sizeof error;
    return poll(&p, 1, CONNECT_MS) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 &&
           !error;
}

/* The descriptor of a link to rank 0, or -1. */
static int try_address(fm__watch *w, const fm__door *door, int i)
{
    struct sockaddr_storage to;
    const socklen_t         n = fill_address(&to, door, i);
    const int fd              = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    fm__frame f;
    if (fd < 0) return -1;
    const int is_open =
        (connect(fd, (struct sockaddr *)&to, n) == 0 || errno == EINPROGRESS) && is_connected(fd);
    if (is_open && greet(w, fd, door->cookie) == 0 && read_frame(fd, &f, answer_s) == 0 &&
        f.kind == FM__HELLO && f.calls == door->cookie && f.rank == 0)
        return fd;
    close(fd);
    return -1;
}

static fm_status cannot_reach(const fm__watch *w, const fm__door *door)
{
    fm_str tried = {0};
    for (int i = 0; i < (int)door->n_address; i++) {
        char text[INET6_ADDRSTRLEN] = "?";
        inet_ntop(door->address[i].is_v6 ? AF_INET6 : AF_INET, door->address[i].at, text,
                  sizeof text);
        fm_str_printf(&tried, "%s%s", i ? ", " : "", text);
    }
    const fm_status rc = fm_fail(FM_E_COMM,
                                 "rank %d on %s cannot reach rank 0 on %s by TCP (port %u of %s); "
                                 "--comm-interface names the network to use",
                                 w->plan.rank, w->plan.host(w->plan.of, w->plan.rank),
                                 w->plan.host(w->plan.of, 0), door->port, tried.text);
    fm_str_fini(&tried);
    return rc;
}

static fm_status reach_rank_0(fm__watch *w, const fm__door *door)
{
    const double until = fm_now() + all_tries_s;
    do {
        for (int i = 0; i < (int)door->n_address && i < FM__DOOR_ADDRESSES; i++) {
            const int fd = try_address(w, door, i);
            if (fd < 0) continue;
            adopt(w, fd, 0);
            return FM_OK;
        }
        poll(NULL, 0, 100);
    } while (fm_now() < until);
    return cannot_reach(w, door);
}

fm_status fm__watch_link(fm__watch *w, const fm__door *door)
{
    if (w->plan.rank == 0) return accept_all(w, door->cookie);
    if (door->port == 0) return fm_fail(FM_E_COMM, "rank 0 could not open its watch");
    return reach_rank_0(w, door);
}
