/* SPDX-License-Identifier: Apache-2.0 */
/* Host names, with a resolver that returns what the test sets, when the test says so. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/lookup.h"

/* --- the resolver ---------------------------------------------------------- */

static pthread_mutex_t    lock     = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t     released = PTHREAD_COND_INITIALIZER;
static const char *const *addresses; /* NULL: the name is not known */
static int                is_held, n_question;

static struct addrinfo *new_address(const char *text, int port)
{
    struct addrinfo    *a = calloc(1, sizeof *a);
    struct sockaddr_in *s = calloc(1, sizeof *s);
    assert_true(a && s);
    s->sin_family = AF_INET;
    s->sin_port   = htons((uint16_t)port);
    assert_int_equal(inet_pton(AF_INET, text, &s->sin_addr), 1);
    a->ai_addr    = (struct sockaddr *)s;
    a->ai_addrlen = sizeof *s;
    return a;
}

static int numbers(const char *host, int port, struct addrinfo **out)
{
    struct in_addr is;
    if (inet_pton(AF_INET, host, &is) != 1) return EAI_NONAME;
    *out = new_address(host, port);
    return 0;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *want,
                struct addrinfo **out)
{
    if (want->ai_flags & AI_NUMERICHOST) return numbers(host, atoi(service), out);
    pthread_mutex_lock(&lock);
    n_question++;
    while (is_held) pthread_cond_wait(&released, &lock);
    const char *const *text = addresses;
    pthread_mutex_unlock(&lock);
    for (*out = NULL; text && *text; text++) {
        struct addrinfo **end = out;
        while (*end) end = &(*end)->ai_next;
        *end = new_address(*text, atoi(service));
    }
    return *out ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *a)
{
    for (struct addrinfo *next; a; a = next) {
        next = a->ai_next;
        free(a->ai_addr);
        free(a);
    }
}

static void say(const char *const *list, int holds)
{
    pthread_mutex_lock(&lock);
    addresses = list;
    is_held   = holds;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

static int n_asked(void)
{
    pthread_mutex_lock(&lock);
    const int n = n_question;
    pthread_mutex_unlock(&lock);
    return n;
}

/* --- what is asked --------------------------------------------------------- */

static const char *const one[] = {"10.0.0.1", NULL}, *const two[] = {"10.0.0.1", "10.0.0.2", NULL},
                         *const moved[] = {"10.0.0.9", NULL};

static const char *address(fm_lookup *l)
{
    static char               text[64];
    socklen_t                 n   = 0;
    const char               *why = NULL;
    const struct sockaddr_in *a   = (const void *)fm_lookup_address(l, &n, &why);
    if (!a) return why;
    assert_null(why);
    assert_int_equal(ntohs(a->sin_port), 30000);
    return inet_ntop(AF_INET, &a->sin_addr, text, sizeof text);
}

static void wait_known(fm_lookup *l)
{
    while (fm_lookup_is_pending(l)) usleep(1000);
}

static void numbers_are_known_at_once(void **state)
{
    fm_lookup *l = NULL;
    const int  n = n_asked();
    (void)state;
    assert_int_equal(fm_lookup_create(&l, "127.0.0.1", 30000), FM_OK);
    assert_false(fm_lookup_is_pending(l));
    assert_string_equal(address(l), "127.0.0.1");
    fm_lookup_fail(l);
    assert_string_equal(address(l), "127.0.0.1");
    assert_int_equal(n_asked(), n);
    fm_lookup_destroy(l);
}

static void a_slow_resolver_holds_up_nobody(void **state)
{
    fm_lookup *l = NULL, *left = NULL;
    (void)state;
    say(one, 1);
    const double began = fm_now();
    assert_int_equal(fm_lookup_create(&l, "a", 30000), FM_OK);
    assert_int_equal(fm_lookup_create(&left, "a", 30000), FM_OK);
    assert_true(fm_lookup_is_pending(l));
    assert_string_equal(address(l), "its name is being looked up");
    fm_lookup_destroy(left); /* its thread goes on without it */
    assert_true(fm_now() - began < 1);
    say(one, 0);
    wait_known(l);
    assert_string_equal(address(l), "10.0.0.1");
    fm_lookup_destroy(l);
}

static void the_next_address_follows_a_failure(void **state)
{
    fm_lookup *l = NULL;
    (void)state;
    say(two, 0);
    assert_int_equal(fm_lookup_create(&l, "a", 30000), FM_OK);
    wait_known(l);
    static const char *const want[] = {"10.0.0.1", "10.0.0.2", "10.0.0.1"};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(address(l), want[i]);
        fm_lookup_fail(l);
    }
    fm_lookup_destroy(l);
}

static void wait_address(fm_lookup *l, const char *want)
{
    for (const double began = fm_now(); strcmp(address(l), want); usleep(10000)) {
        if (fm_now() - began > 10) fail_msg("it is %s, not %s", address(l), want);
        fm_lookup_fail(l);
    }
}

/* A host that is not known yet, then is, then moves, then is not known for a while. */
static void names_are_looked_up_again(void **state)
{
    fm_lookup *l = NULL;
    (void)state;
    say(NULL, 0);
    assert_int_equal(fm_lookup_create(&l, "a", 30000), FM_OK);
    wait_known(l);
    assert_string_equal(address(l), gai_strerror(EAI_NONAME));
    say(one, 0);
    wait_address(l, "10.0.0.1");
    say(moved, 0);
    wait_address(l, "10.0.0.9");
    const int n = n_asked();
    say(NULL, 0);
    while (n_asked() == n) {
        usleep(10000);
        fm_lookup_fail(l);
    }
    usleep(50000);
    assert_string_equal(address(l), "10.0.0.9");
    fm_lookup_destroy(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_known_at_once),
        cmocka_unit_test(a_slow_resolver_holds_up_nobody),
        cmocka_unit_test(the_next_address_follows_a_failure),
        cmocka_unit_test(names_are_looked_up_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
