/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/read/context_error.h"

#include <stdio.h>
#include <string.h>

#define LEAD "This model's maximum context length is "

fm_status fm__fail_context(int64_t n_prompt, int64_t n_new, int64_t context)
{
    if (n_new < 0)
        return fm_fail(FM_E_ARG,
                       LEAD "%lld tokens. However, your messages resulted in %lld tokens. Please "
                            "reduce the length of the messages.",
                       (long long)context, (long long)n_prompt);
    return fm_fail(
        FM_E_ARG,
        LEAD "%lld tokens. However, you requested %lld tokens (%lld in the messages, %lld "
             "in the completion). Please reduce the length of the messages or completion.",
        (long long)context, (long long)(n_prompt + n_new), (long long)n_prompt, (long long)n_new);
}

int fm__is_context_error(const char *why)
{
    static const char engine[] = "the prompt has ";
    return !strncmp(why, LEAD, strlen(LEAD)) || !strncmp(why, engine, strlen(engine));
}

void fm__put_messages_context_error(fm_str *out, const char *why)
{
    long long context, n;
    if (sscanf(why, LEAD "%lld tokens. However, you requested %lld", &context, &n) == 2 ||
        sscanf(why, LEAD "%lld tokens. However, your messages resulted in %lld", &context, &n) == 2)
        fm_str_printf(out, "prompt is too long: %lld tokens > %lld maximum", n, context);
    else
        fm_str_printf(out, "prompt is too long: %s", why);
}
