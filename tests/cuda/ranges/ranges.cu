/* SPDX-License-Identifier: Apache-2.0 */
/* With a profiler attached passes and ops have named ranges; the witness is one. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <string>

#include "check.h"
#include "engine_answers.h"
#include "ranges/witness.h"

FM_TEST(ranges_for_a_profiler)
{
    const char *path = getenv("NVTX_INJECTION64_PATH"), *at = getenv("FM_TEST_DATA");
    if (!path || !strstr(path, "witness")) return; /* another profiler, or none */
    void *lib = dlopen(path, RTLD_NOW);
    void *see = lib ? dlsym(lib, "fm_witness_seen") : NULL;
    if (!see) return fm_check_failed(__FILE__, __LINE__, "%s", dlerror());
    const std::string     dir = std::string(at ? at : FM_TEST_DATA) + "/v3";
    const fm_engine_asked how = {dir.c_str(), "cuda", "16", "64", "2048", 0, 0, NULL};
    fm_answers_of         a;
    if (!fm_ask_engine(&how, &a)) fm_check_failed(__FILE__, __LINE__, "%s", a.why);
    const fm_witness s = ((fm_witness(*)())see)();
    FM_CHECK(s.n_pass > FM_N_ANSWER / 2 && s.n_attend == s.n_pass);
    FM_CHECK(s.n_push == s.n_pop && s.depth == 0);
}
