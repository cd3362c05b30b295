/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net/lookup.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const double again_after = 2; /* seconds between two questions to the resolver */

/* A resolver request, reference-counted by the caller and the thread that resolves it. */
typedef struct {
    pthread_mutex_t  lock;
    int              n_user, is_done, error;
    char            *host;
    char             service[16];
    struct addrinfo *list;
} question;

struct fm_lookup {
    char            *host;
    int              port;
    question        *asked; /* under way, or NULL */
    double           when;  /* when it was asked */
    struct addrinfo *list, *at;
    int              error; /* of the last question */
};

/* --- the question ---------------------------------------------------------- */

static void leave(question *q)
{
    pthread_mutex_lock(&q->lock);
    const int is_last = --q->n_user == 0;
    pthread_mutex_unlock(&q->lock);
    if (!is_last) return;
    if (q->list) freeaddrinfo(q->list);
    pthread_mutex_destroy(&q->lock);
    free(q->host);
    free(q);
}

static int resolve(const question *q, int flags, struct addrinfo **list)
{
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    return getaddrinfo(q->host, q->service, &want, list);
}

static void *work(void *arg)
{
    question        *q    = arg;
    struct addrinfo *list = NULL;
    const int        e    = resolve(q, 0, &list);
    pthread_mutex_lock(&q->lock);
    q->error   = e;
    q->list    = e ? NULL : list;
    q->is_done = 1;
    pthread_mutex_unlock(&q->lock);
    leave(q);
    return NULL;
}

static question *new_question(const char *host, int port)
{
    question *q = calloc(1, sizeof *q);
    if (!q) return NULL;
    q->n_user = 1;
    q->host   = strdup(host);
    snprintf(q->service, sizeof q->service, "%d", port);
    pthread_mutex_init(&q->lock, NULL);
    if (q->host) return q;
    leave(q);
    return NULL;
}

/* Numbers need no resolver. */
static int is_number(question *q)
{
    q->is_done = resolve(q, AI_NUMERICHOST, &q->list) == 0;
    return q->is_done;
}

static int start(question *q)
{
    pthread_t t;
    q->n_user++;
    if (pthread_create(&t, NULL, work, q) == 0) return pthread_detach(t) == 0;
    q->n_user--;
    return 0;
}

static fm_status ask(fm_lookup *l)
{
    question *q = new_question(l->host, l->port);
    if (!q) return fm_fail(FM_E_OOM, "address of %s", l->host);
    if (!is_number(q) && !start(q)) {
        leave(q);
        return fm_fail(FM_E_OOM, "%s: no thread to look it up could be started", l->host);
    }
    l->asked = q;
    l->when  = fm_now();
    return FM_OK;
}

/* --- the asker ------------------------------------------------------------- */

/* Addresses that are known stay where a later question finds none. */
static void take_answer(fm_lookup *l)
{
    question *q = l->asked;
    if (!q) return;
    pthread_mutex_lock(&q->lock);
    const int is_done = q->is_done;
    pthread_mutex_unlock(&q->lock);
    if (!is_done) return;
    l->asked = NULL;
    l->error = q->error;
    if (q->list) {
        if (l->list) freeaddrinfo(l->list);
        l->list = l->at = q->list;
        q->list         = NULL;
    }
    leave(q);
}

fm_status fm_lookup_create(fm_lookup **out, const char *host, int port)
{
    fm_lookup *l = calloc(1, sizeof *l);
    if (!l || !(l->host = strdup(host))) {
        free(l);
        return fm_fail(FM_E_OOM, "address of %s", host);
    }
    l->port            = port;
    const fm_status rc = ask(l);
    if (rc != FM_OK) {
        fm_lookup_destroy(l);
        return rc;
    }
    *out = l;
    return FM_OK;
}

void fm_lookup_destroy(fm_lookup *l)
{
    if (!l) return;
    if (l->asked) leave(l->asked);
    if (l->list) freeaddrinfo(l->list);
    free(l->host);
    free(l);
}

int fm_lookup_is_pending(fm_lookup *l)
{
    take_answer(l);
    return l->asked && !l->list;
}

const struct sockaddr *fm_lookup_address(fm_lookup *l, socklen_t *len, const char **why)
{
    take_answer(l);
    *why = l->list ? NULL : l->asked ? "its name is being looked up" : gai_strerror(l->error);
    if (!l->list) return NULL;
    *len = l->at->ai_addrlen;
    return l->at->ai_addr;
}

void fm_lookup_fail(fm_lookup *l)
{
    take_answer(l);
    if (l->list) l->at = l->at->ai_next ? l->at->ai_next : l->list;
    if (!l->asked && fm_now() - l->when > again_after) ask(l);
}
