/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/relay/tokens.h"

#include <stdlib.h>
#include <string.h>

void fm_relay_tokens_fini(fm_relay_tokens *t)
{
    for (int i = 0; i < t->n; i++) fm_ids_fini(&t->answer[i]);
    free(t->answer);
    *t = (fm_relay_tokens){0};
}

void fm_relay_tokens_clear(fm_relay_tokens *t)
{
    for (int i = 0; i < t->n; i++) t->answer[i].n = 0;
}

static void make_room(fm_relay_tokens *t, int n)
{
    if (n <= t->n) return;
    t->answer = realloc(t->answer, (size_t)n * sizeof *t->answer);
    FM_BUG_UNLESS(t->answer != NULL);
    memset(t->answer + t->n, 0, (size_t)(n - t->n) * sizeof *t->answer);
    t->n = n;
}

void fm_relay_tokens_add(fm_relay_tokens *t, int answer, int32_t id)
{
    FM_BUG_UNLESS(answer >= 0 && answer < FM_RELAY_MAX_ANSWERS);
    make_room(t, answer + 1);
    fm_ids_add(&t->answer[answer], id);
}

size_t fm_relay_tokens_count(const fm_relay_tokens *t, int answer)
{
    return answer < t->n ? t->answer[answer].n : 0;
}

size_t fm_relay_tokens_total(const fm_relay_tokens *t)
{
    size_t n = 0;
    for (int i = 0; i < t->n; i++) n += t->answer[i].n;
    return n;
}

void fm_relay_tokens_write(fm_str *out, const fm_relay_tokens *t)
{
    int n_written = 0;
    for (int i = 0; i < t->n; i++) {
        const fm_ids *ids = &t->answer[i];
        if (!ids->n) continue;
        fm_str_printf(out, n_written++ ? " %d:" : "%d:", i);
        for (size_t k = 0; k < ids->n; k++) fm_str_printf(out, k ? ",%d" : "%d", (int)ids->id[k]);
    }
}

/* A number in [0, most] at *at, which is moved behind it; -1: there is none. */
static int64_t read_number(const char **at, const char *end, int64_t most)
{
    int64_t     n     = 0;
    const char *begin = *at;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
        if ((n = n * 10 + (**at - '0')) > most) return -1;
    return *at > begin ? n : -1;
}

static fm_status wrong_list(void)
{
    return fm_fail(FM_E_FORMAT, "the list of tokens is malformed");
}

fm_status fm_relay_tokens_read(fm_relay_tokens *t, const char *text, size_t len)
{
    const char *at = text, *end = text + len;
    while (at < end) {
        const int64_t answer = read_number(&at, end, FM_RELAY_MAX_ANSWERS - 1);
        if (answer < 0 || at == end || *at != ':') return wrong_list();
        do {
            at++;
            const int64_t id = read_number(&at, end, INT32_MAX);
            if (id < 0) return wrong_list();
            fm_relay_tokens_add(t, (int)answer, (int32_t)id);
        } while (at < end && *at == ',');
        if (at < end && *at++ != ' ') return wrong_list();
    }
    return FM_OK;
}
