/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts over tiers.  What the MTP layer caches does not decide what is said, so that comparing
 * answers would not show a page saved or loaded without it: files are compared with files, and
 * drafts accepted behind a loaded prefix with those behind one that stayed in the pool. */
#define _GNU_SOURCE
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/str.h"
#include "llm/engine.h"

static char work[] = "/tmp/fathom-tiers-drafts-XXXXXX";

static const char *const text[] = {
    "What is 12 plus 30? And then add 7 to it, and tell me what the sum is.",
    "Count the letters r in strawberry, then those in raspberry and in cherry.",
    "Sort these numbers: 5, 3, 9, 1, 22, 17, 4, 8, 61, 13, 2, 40, 6, 31.",
    "Tell me a story about a cat that lived in a house by the river.",
    "Spell the word banana, then the words apple, orange, melon and plum.",
};
enum { N_TEXT = sizeof text / sizeof *text };

/* `demotes`: everything leaves the pool after every step, and is loaded whatever that costs. */
static fm_engine *open_engine(const char *folder, const char *tokens, const char *policy,
                              const char *demotes)
{
    char        dir[64];
    fm_options *o = NULL;
    fm_engine  *e = NULL;
    snprintf(dir, sizeof dir, "%s/%s", work, folder);
    const char *const set[] = {"model-path", FM_TEST_TINY, "max-running-requests", "2",
                               "context-length", "256", "chunked-prefill-size", "-1",
                               "page-size", "4", "speculative-algorithm", "NEXTN",
                               "disable-speculative-adaptive", "1", "speculative-num-steps", "7",
                               "hicache-storage-backend", "file", "hicache-storage-dir", dir,
                               "hicache-write-policy", policy, "max-total-tokens", tokens,
                               "hicache-debug-demote", demotes, NULL};
    assert_int_equal(fm_options_create(&o), FM_OK);
    for (int i = 0; set[i]; i += 2)
        if (fm_options_set(o, set[i], set[i + 1]) != FM_OK) fail_msg("%s", fm_why());
    if (fm_engine_open(&e, o) != FM_OK) fail_msg("%s", fm_why());
    fm_options_destroy(o);
    return e;
}

typedef struct {
    int64_t accepted, drafted;
    int     cached, stored;
} tally;

static void answer(fm_engine *e, const char *question, tally *sum)
{
    fm_event  ev;
    fm_prompt p = {.text = question, .text_len = strlen(question), .sampling = fm_sampling_default()};
    p.sampling.temperature    = 0;
    p.sampling.max_new_tokens = 60;
    p.sampling.min_new_tokens = 60;
    if (fm_engine_submit(e, &p, NULL) != FM_OK) fail_msg("%s", fm_why());
    while (fm_engine_busy(e)) {
        if (fm_engine_step(e) != FM_OK) fail_msg("%s", fm_why());
        while (fm_engine_poll(e, &ev)) {
            if (ev.finish == FM_FINISH_NONE) continue;
            sum->cached += ev.n_cached;
            sum->stored += ev.n_cached_storage;
        }
    }
}

/* One after the other; drafts are counted from here on. */
static tally answer_all(fm_engine *e)
{
    const fm_sched_stats before = fm_engine_get_info(e).sched;
    tally                sum    = {0};
    for (int i = 0; i < N_TEXT; i++) answer(e, text[i], &sum);
    const fm_sched_stats after = fm_engine_get_info(e).sched;
    sum.accepted               = after.n_accepted - before.n_accepted;
    sum.drafted                = after.n_draft - before.n_draft;
    return sum;
}

/* --- files ----------------------------------------------------------------- */

static int n_compared;

static void read_all(const char *path, fm_str *out)
{
    char  part[4096];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) fm_str_add(out, part, n);
    fclose(f);
}

/* A file of `ample` with that of the same name in `scant`, if it is there. */
static int compare(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    char         twin[256];
    struct stat  is;
    fm_str       a = {0}, b = {0};
    const size_t n = strlen(work) + strlen("/ample");
    (void)st;
    (void)at;
    snprintf(twin, sizeof twin, "%s/scant%s", work, path + n);
    if (kind != FTW_F || !strstr(path, ".page") || stat(twin, &is) != 0) return 0;
    read_all(path, &a);
    read_all(twin, &b);
    if (a.len != b.len || memcmp(a.text, b.text, a.len)) fail_msg("%s differs from %s", twin, path);
    fm_str_fini(&a);
    fm_str_fini(&b);
    n_compared++;
    return 0;
}

/* Pages that make room for a chain of drafts are saved before it writes there. */
static void evicted_pages_are_saved_whole(void **state)
{
    static const char *const pool[][2] = {{"ample", "4096"}, {"scant", "256"}};
    char                     ample[64];
    (void)state;
    for (int i = 0; i < 2; i++) {
        fm_engine *e = open_engine(pool[i][0], pool[i][1], "write_back", "0");
        answer_all(e);
        fm_engine_close(e);
    }
    snprintf(ample, sizeof ample, "%s/ample", work);
    assert_int_equal(nftw(ample, compare, 8, FTW_PHYS), 0);
    assert_true(n_compared > 50);
}

/* --- drafts ---------------------------------------------------------------- */

/* Behind prefixes from files as many drafts are right as behind those that stayed in the pool. */
static void drafts_go_on_behind_loaded_prefixes(void **state)
{
    (void)state;
    fm_engine *e = open_engine("turns", "4096", "write_through", "0");
    answer_all(e);
    const tally stayed = answer_all(e);
    fm_engine_close(e);
    e                  = open_engine("turns", "4096", "write_through", "1");
    const tally loaded = answer_all(e);
    fm_engine_close(e);
    assert_int_equal(stayed.stored, 0);
    assert_true(loaded.stored > 0);
    assert_int_equal(loaded.stored, loaded.cached);
    assert_int_equal(loaded.cached, stayed.cached);
    assert_true(stayed.accepted > 0);
    assert_int_equal(loaded.drafted, stayed.drafted);
    assert_int_equal(loaded.accepted, stayed.accepted);
}

static int clear(void **state)
{
    char line[64];
    (void)state;
    snprintf(line, sizeof line, "rm -rf %s", work);
    return system(line);
}

int main(void)
{
    if (!mkdtemp(work)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evicted_pages_are_saved_whole),
        cmocka_unit_test(drafts_go_on_behind_loaded_prefixes),
    };
    return cmocka_run_group_tests(tests, NULL, clear);
}
