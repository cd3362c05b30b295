/* SPDX-License-Identifier: Apache-2.0 */
/* The whole engine on the GPU back end: batching, chunks, the prefix cache,
 * preemption and padding move no token, and the CPU says nearly the same. */
#include <stdlib.h>

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

/* Steps cannot be recorded on a GPU that is emulated. */
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

static void compare(const char *name)
{
    const std::string     dir    = data(name);
    const int             rec    = can_record();
    const fm_engine_asked usual  = {dir.c_str(), "cuda", "16", "64", "2048", 0, 0};
    const fm_engine_asked ways[] = {
        {dir.c_str(), "cuda", "1", "64", "2048", 0, 0},    /* one at a time */
        {dir.c_str(), "cuda", "16", "7", "2048", 0, 0},    /* in chunks */
        {dir.c_str(), "cuda", "16", "64", "2048", 1, rec}, /* nothing is shared */
        {dir.c_str(), "cuda", "16", "64", "96", 0, rec},   /* too little memory for all at once */
    };
    const fm_answers_of gpu = ask(usual);
    for (const fm_engine_asked &w : ways) {
        const fm_answers_of a = ask(w);
        for (int i = 0; i < FM_N_ASKED; i++)
            for (int k = 0; k < FM_N_ANSWER; k++)
                if (a.token[i][k] != gpu.token[i][k]) {
                    fm_check_failed(__FILE__, __LINE__,
                                    "%s: token %d of answer %d depends on running=%s chunk=%s "
                                    "tokens=%s recorded=%d",
                                    name, k, i, w.max_running, w.chunk, w.max_tokens, w.records);
                    return;
                }
    }
    const fm_engine_asked cpu  = {dir.c_str(), "cpu", "16", "64", "2048", 0, 0};
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
            for (const fm_workload &w : ways) check_same(transcript_of(w), want, w);
        }
}
