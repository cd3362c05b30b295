/* SPDX-License-Identifier: Apache-2.0 */
/* The whole forward pass on the GPU back end against the CPU's: the same bf16
 * weights and sums in f32, other orders of summation. */
#include <stdlib.h>

#include <string>

#include "backend_model.h"
#include "check.h"

/* Another machine may have the tests' data elsewhere. */
static std::string data(const char *name)
{
    const char *dir = getenv("FM_TEST_DATA");
    return std::string(dir ? dir : FM_TEST_DATA) + "/" + name;
}

static void compare(const fm_both_options &o)
{
    const char *why  = "";
    fm_both    *both = fm_both_open(&o, &why);
    if (!both) {
        fm_check_failed(__FILE__, __LINE__, "%s", why);
        return;
    }
    for (int step = 0; step < 4; step++) {
        const double off = fm_both_pass(both, step, &why);
        if (!(off >= 0 && off < 0.02))
            fm_check_failed(__FILE__, __LINE__, "%s, pass %d: logits are off by %g; %s",
                            o.dir ? o.dir : o.json, step, off, why);
    }
    if (o.deterministic && !fm_both_is_invariant(both, &why))
        fm_check_failed(__FILE__, __LINE__, "chunks move bits; %s", why);
    fm_both_close(both);
}

FM_TEST(v3_checkpoint)
{
    const std::string dir = data("v3");
    compare({dir.c_str(), NULL, NULL, 16, 1});
}

FM_TEST(v2lite_checkpoint)
{
    const std::string dir = data("v2lite");
    compare({dir.c_str(), NULL, NULL, 1, 1});
}

FM_TEST(fp8_checkpoint)
{
    const std::string dir = data("v3wide-fp8");
    compare({dir.c_str(), NULL, NULL, 64, 1});
}
