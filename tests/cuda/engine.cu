/* SPDX-License-Identifier: Apache-2.0 */
/* The whole engine on the GPU back end: batching, chunks, the prefix cache,
 * preemption and padding move no token, and the CPU says nearly the same. */
#include <stdlib.h>

#include <string>

#include "check.h"
#include "engine_answers.h"

static fm_answers_of ask(const fm_engine_asked &how)
{
    fm_answers_of a;
    if (!fm_ask_engine(&how, &a)) fm_check_failed(__FILE__, __LINE__, "%s", a.why);
    return a;
}

static void compare(const char *name)
{
    const char           *data   = getenv("FM_TEST_DATA");
    const std::string     dir    = std::string(data ? data : FM_TEST_DATA) + "/" + name;
    const fm_engine_asked usual  = {dir.c_str(), "cuda", "16", "64", "2048", 0};
    const fm_engine_asked ways[] = {
        {dir.c_str(), "cuda", "1", "64", "2048", 0},  /* one at a time */
        {dir.c_str(), "cuda", "16", "7", "2048", 0},  /* in chunks */
        {dir.c_str(), "cuda", "16", "64", "2048", 1}, /* nothing is shared */
        {dir.c_str(), "cuda", "16", "64", "96", 0},   /* too little memory for all at once */
    };
    const fm_answers_of gpu = ask(usual);
    for (const fm_engine_asked &w : ways) {
        const fm_answers_of a = ask(w);
        for (int i = 0; i < FM_N_ASKED; i++)
            for (int k = 0; k < FM_N_ANSWER; k++)
                if (a.token[i][k] != gpu.token[i][k]) {
                    fm_check_failed(__FILE__, __LINE__, "%s: token %d of answer %d depends on running=%s chunk=%s tokens=%s",
                                    name, k, i, w.max_running, w.chunk, w.max_tokens);
                    return;
                }
    }
    const fm_engine_asked cpu  = {dir.c_str(), "cpu", "16", "64", "2048", 0};
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
