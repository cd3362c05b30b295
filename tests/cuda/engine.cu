/* SPDX-License-Identifier: Apache-2.0 */
/* The whole engine on the GPU back end: batching, chunks, the prefix cache,
 * preemption and padding move no token, and the CPU says nearly the same. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "check.h"
#include "engine_answers.h"
#include "engine_workload.h"

static fm_answers_of ask(const fm_engine_asked &how)
{
    fm_answers_of a;
    if (!fm_ask_engine(&how, &a)) fm_check_failed(__FILE__, __LINE__, "%s", a.why);
    return a;
}

static std::string data(const char *name)
{
    const char *at = getenv("FM_TEST_DATA");
    return std::string(at ? at : FM_TEST_DATA) + "/" + name;
}

/* Also on a GPU that is emulated. */
static bool can_record()
{
    cudaStream_t s;
    cudaGraph_t  graph;
    if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess) return false;
    const bool can = cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    if (can && cudaStreamEndCapture(s, &graph) == cudaSuccess) (void)cudaGraphDestroy(graph);
    (void)cudaStreamDestroy(s);
    return can;
}

/* Every way recorded and not; over the emulator, which takes its time, in turn. */
static bool tries(int way, int records)
{
    cudaDeviceProp p;
    const bool     is_emulated = cudaGetDeviceProperties(&p, 0) == cudaSuccess && !strcmp(p.name, "emulator");
    return !is_emulated || (way + records) % 2 == 0;
}

static void compare(const char *name)
{
    const std::string     dir    = data(name);
    const int             rec    = can_record();
    const fm_engine_asked usual  = {dir.c_str(), "cuda", "16", "64", "2048", 0, 0, NULL};
    const fm_engine_asked ways[] = {
        {dir.c_str(), "cuda", "1", "64", "2048", 0, 0, NULL},    /* one at a time */
        {dir.c_str(), "cuda", "16", "7", "2048", 0, 0, NULL},    /* in chunks */
        {dir.c_str(), "cuda", "16", "64", "2048", 1, rec, NULL}, /* nothing is shared */
        {dir.c_str(), "cuda", "16", "64", "96", 0, rec, NULL},   /* too little memory for all at once */
        {dir.c_str(), "cuda", "16", "64", "2048", 0, rec, "4096"}, /* these texts lie in one part */
    };
    const fm_answers_of gpu = ask(usual);
    for (const fm_engine_asked &w : ways) {
        const fm_answers_of a = ask(w);
        for (int i = 0; i < FM_N_ASKED; i++)
            for (int k = 0; k < FM_N_ANSWER; k++)
                if (a.token[i][k] != gpu.token[i][k]) {
                    fm_check_failed(__FILE__, __LINE__,
                                    "%s: token %d of answer %d depends on running=%s chunk=%s "
                                    "tokens=%s recorded=%d tile=%s",
                                    name, k, i, w.max_running, w.chunk, w.max_tokens, w.records,
                                    w.tile ? w.tile : "512");
                    return;
                }
    }
    const fm_engine_asked cpu  = {dir.c_str(), "cpu", "16", "64", "2048", 0, 0, NULL};
    const fm_answers_of   host = ask(cpu);
    int                   same = 0; /* until a near-tie parts them */
    for (int i = 0; i < FM_N_ASKED; i++)
        for (int k = 0; k < FM_N_ANSWER && host.token[i][k] == gpu.token[i][k]; k++) same++;
    if (same * 10 < FM_N_ASKED * FM_N_ANSWER * 8)
        fm_check_failed(__FILE__, __LINE__, "%s: only %d of %d tokens are the CPU's", name, same,
                        FM_N_ASKED * FM_N_ANSWER);
}

FM_TEST(engine_v3)
{
    compare("v3");
}

/* The device times its ops, in steps that are recorded as in those that are not; no token moves. */
static void trace(int records, const fm_answers_of &plain)
{
    const std::string     dir   = data("v3");
    char                  file[] = "/tmp/fathom-traced-XXXXXX";
    const int             fd    = mkstemp(file);
    const fm_engine_asked how   = {dir.c_str(), "cuda", "16", "64", "2048", 1, records, NULL};
    fm_answers_of         a;
    fm_traced             t;
    if (fd < 0 || !fm_ask_traced(&how, file, &a, &t))
        return fm_check_failed(__FILE__, __LINE__, "%s", fd < 0 ? file : a.why);
    close(fd);
    unlink(file);
    FM_CHECK(memcmp(a.token, plain.token, sizeof a.token) == 0);
    FM_CHECK(t.n_step > 30);
    FM_CHECK(2 * t.n_embed > t.n_step && t.n_embed <= t.n_step);
    FM_CHECK(t.n_experts >= t.n_embed && t.n_experts % t.n_embed == 0);
    FM_CHECK(t.n_beside > 0 && t.n_beside <= t.n_experts);
    FM_CHECK(t.n_sample > 0 && t.n_sample <= t.n_step);
    FM_CHECK(t.n_span > 100 && t.n_outside == 0);
    FM_CHECK(t.device_ns > t.wall_ns / 20 && t.device_ns < 10 * t.wall_ns);
}

FM_TEST(engine_traced)
{
    const std::string   dir   = data("v3");
    const fm_answers_of plain = ask({dir.c_str(), "cuda", "16", "64", "2048", 1, 0, NULL});
    for (int records = 0; records <= can_record(); records++) trace(records, plain);
}

static fm_answers_of ask_tiered(const fm_engine_asked &how, fm_tiers_asked &t)
{
    fm_answers_of a;
    if (!fm_ask_tiered(&how, &t, &a)) fm_check_failed(__FILE__, __LINE__, "%s", a.why);
    return a;
}

static void check_tokens(const fm_answers_of &got, const fm_answers_of &want)
{
    for (int i = 0; i < FM_N_ASKED; i++)
        for (int k = 0; k < FM_N_ANSWER; k++) FM_CHECK(got.token[i][k] == want.token[i][k]);
}

/* Host memory under the pool, and files under that: everything leaves the pool after every step and
 * comes back, and no token moves. */
FM_TEST(pages_come_back_from_host_memory_and_files)
{
    const std::string model = data("v3");
    char              dir[] = "/tmp/fathom-tiers-XXXXXX";
    FM_CHECK(mkdtemp(dir) != NULL);
    const fm_engine_asked plain   = {model.c_str(), "cuda", "16", "64", "2048", 0, can_record()};
    const fm_engine_asked crowded = {model.c_str(), "cuda", "2", "7", "96", 0, 0};
    for (const char *cache : {"bfloat16", "fp8_e4m3"}) {
        fm_tiers_asked      off  = {NULL, "write_back", cache, 1, 0, NULL, 0, 0, 0};
        const fm_answers_of want = ask_tiered(plain, off);
        fm_tiers_asked      host = {NULL, "write_through", cache, 2, 1, NULL, 0, 0, 0};
        check_tokens(ask_tiered(plain, host), want);
        FM_CHECK(host.n_host > 0 && host.n_disk == 0);
        fm_tiers_asked files = {dir, "write_through", cache, 2, 1, NULL, 0, 0, 0}; /* then another process */
        fm_tiers_asked again = {dir, "write_back", cache, 1, 0, NULL, 0, 0, 0};
        check_tokens(ask_tiered(crowded, files), want);
        check_tokens(ask_tiered(plain, again), want);
        FM_CHECK(again.n_disk > 0);
    }
    FM_CHECK(system((std::string("rm -rf ") + dir).c_str()) == 0);
}

/* Bytes of pages in host memory change while they lie there: the checksum finds them, they are
 * computed again, and no token moves. */
FM_TEST(pages_altered_in_host_memory_are_computed_again)
{
    const std::string     model = data("v3");
    const fm_engine_asked plain = {model.c_str(), "cuda", "16", "64", "2048", 0, 0, NULL};
    fm_tiers_asked        off   = {NULL, "write_back", "bfloat16", 1, 0, NULL, 0, 0, 0};
    fm_tiers_asked        bad   = {NULL, "write_through", "bfloat16", 3, 1, "0.1", 0, 0, 0};
    check_tokens(ask_tiered(plain, bad), ask_tiered(plain, off));
    FM_CHECK(bad.n_altered > 0 && bad.n_host > 0);
}

static std::string read_file(const std::string &path)
{
    std::ifstream f(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(f), std::istreambuf_iterator<char>()};
}

/* A copy of the model in which the embedding of one token has a NaN. */
static std::string spoil_token(const std::string &model, int token)
{
    char        dir[] = "/tmp/fathom-spoilt-XXXXXX";
    std::string all   = read_file(model + "/model.safetensors");
    uint64_t    n_header;
    long        begin = 0, rows = 0, width = 0;
    memcpy(&n_header, all.data(), sizeof n_header);
    const size_t at = all.find("model.embed_tokens.weight");
    FM_CHECK(at < n_header && mkdtemp(dir) != NULL);
    FM_CHECK(sscanf(all.c_str() + all.find("[", at), "[%ld,%ld]", &rows, &width) == 2);
    FM_CHECK(sscanf(all.c_str() + all.find("data_offsets", at), "data_offsets\":[%ld", &begin) == 1);
    all[8 + n_header + (size_t)begin + 2 * (size_t)(token * width)]     = (char)0xc0;
    all[8 + n_header + (size_t)begin + 2 * (size_t)(token * width) + 1] = (char)0x7f;
    std::ofstream(std::string(dir) + "/model.safetensors", std::ios::binary) << all;
    std::ofstream(std::string(dir) + "/config.json") << read_file(model + "/config.json");
    return dir;
}

/* Token 68 is in the third prompt alone.  Its request fails, also where the step after
 * it was launched before that was known, and the others say what they always say. */
FM_TEST(a_request_whose_logits_are_not_finite_fails_alone)
{
    const std::string     good = data("v3"), bad = spoil_token(good, 68);
    const fm_engine_asked whole = {good.c_str(), "cuda", "16", "64", "2048", 0, 0, NULL};
    const fm_answers_of   want  = ask(whole);
    for (const char *device : {"cuda", "cpu"}) {
        const fm_engine_asked spoilt = {bad.c_str(), device, "16", "64", "2048", 0, 0, NULL};
        const fm_answers_of   got    = ask(spoilt);
        for (int i = 0; i < FM_N_ASKED; i++) {
            FM_CHECK(!want.failed[i] && got.failed[i] == (i == 2));
            const int n_equal = i == 2 ? 0 : device == std::string("cuda") ? FM_N_ANSWER : 1;
            for (int k = 0; k < n_equal; k++) FM_CHECK(got.token[i][k] == want.token[i][k]);
        }
    }
    (void)remove((bad + "/model.safetensors").c_str());
    (void)remove((bad + "/config.json").c_str());
    (void)rmdir(bad.c_str());
}

static std::string transcript_of(const fm_workload &w)
{
    static char text[FM_WORKLOAD_BYTES];
    const char *why = "";
    if (!fm_run_workload(&w, text, &why)) fm_check_failed(__FILE__, __LINE__, "%s", why);
    return text;
}

static void check_same(const std::string &got, const std::string &want, const fm_workload &w)
{
    size_t at = 0;
    if (got == want) return;
    while (at < got.size() && got[at] == want[at]) at++;
    const size_t from = at < 200 ? 0 : at - 200;
    fm_check_failed(__FILE__, __LINE__,
                    "running=%s overlap=%d recorded=%d: ...%s\n--- instead of ---\n...%s",
                    w.max_running, !w.no_overlap, w.records, got.substr(from, 400).c_str(),
                    want.substr(from, 400).c_str());
}

/* Whether a step is planned before the tokens of the last are known, or started
 * as it was recorded, is seen nowhere: not in a token, a probability, a text or
 * the way an answer ends. */
FM_TEST(steps_planned_ahead_and_recorded_say_the_same)
{
    const std::string dir = data("v3"), tokenizer = data("tokenizer");
    const std::string want =
        transcript_of({dir.c_str(), tokenizer.c_str(), "16", "64", "2048", 0, 1, 0, NULL});
    FM_CHECK(want.find(" stop 77 -1") != std::string::npos); /* ends of every kind were met */
    FM_CHECK(want.find(" stop -1 ") != std::string::npos);
    FM_CHECK(want.find(" abort ") != std::string::npos);
    FM_CHECK(want.find(" length ") != std::string::npos);
    for (int records = 0; records <= can_record(); records++)
        for (int no_overlap = 0; no_overlap <= 1; no_overlap++) {
            const fm_workload ways[] = {
                {dir.c_str(), tokenizer.c_str(), "16", "64", "2048", 0, no_overlap, records, NULL},
                {dir.c_str(), tokenizer.c_str(), "5", "11", "96", 0, no_overlap, records,
                 NULL}, /* crowded, in chunks */
            };
            for (int i = 0; i < 2; i++)
                if (tries(i + no_overlap, records)) check_same(transcript_of(ways[i]), want, ways[i]);
        }
}

/* Nor whether the MTP layer drafts, whatever the schedule and wherever pages are meanwhile: with
 * dummy weights, whose drafts are wrong, and where it is there with the model in the box, whose drafts
 * are right. */
static void drafts_change_nothing(const std::string &dir, const std::string &tokenizer,
                                  const char *format, int most_ways)
{
    const char *const plain[]  = {"load-format", format, NULL};
    const char *const drafts[] = {"load-format", format, "speculative-algorithm", "NEXTN",
                                  "disable-speculative-adaptive", "1", NULL};
    const char *const both[]   = {"load-format", format, "speculative-algorithm", "NEXTN,NGRAM",
                                  "speculative-ngram-min-match-window-size", "1", NULL};
    const char *const below[]  = {"load-format", format, "speculative-algorithm", "NEXTN",
                                  "disable-speculative-adaptive", "1", "page-size", "4",
                                  "enable-hierarchical-cache", "1", "hicache-debug-demote", "1", NULL};
    const std::string want =
        transcript_of({dir.c_str(), tokenizer.c_str(), "16", "64", "2048", 0, 1, 0, plain});
    for (int records = 0; records <= can_record(); records++) {
        const fm_workload ways[] = {
            {dir.c_str(), tokenizer.c_str(), "5", "11", "96", 0, 0, records, drafts},
            {dir.c_str(), tokenizer.c_str(), "16", "64", "2048", 0, 0, records, both},
            {dir.c_str(), tokenizer.c_str(), "16", "64", "2048", 0, 1, records, drafts},
            {dir.c_str(), tokenizer.c_str(), "5", "11", "160", 0, 0, records, below},
        };
        for (int i = 0; i < most_ways; i++)
            if (tries(i, records)) check_same(transcript_of(ways[i]), want, ways[i]);
    }
}

FM_TEST(wrong_drafts_change_nothing)
{
    drafts_change_nothing(data("v3"), data("tokenizer"), "dummy", 4);
}

FM_TEST(right_drafts_change_nothing)
{
    const std::string box = data("../../models/fathom-tiny");
    if (access((box + "/config.json").c_str(), R_OK) != 0) return;
    drafts_change_nothing(box, box, "auto", 1);
}
