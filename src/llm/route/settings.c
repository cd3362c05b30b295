/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/settings.h"

#include <stdlib.h>
#include <string.h>

/* Not the path of the model, which is a host's own matter. */
static const char *const names[FM_N_SETTING] = {"served_model_name",
                                                "version",
                                                "device",
                                                "dtype",
                                                "kv_cache_dtype",
                                                "fp8_activations",
                                                "context_len",
                                                "deterministic",
                                                "attention_split_tile_size",
                                                "reasoning_parser",
                                                "tool_call_parser"};

void fm_settings_read(fm_settings *s, const json_t *info)
{
    fm_settings_fini(s);
    for (int i = 0; i < FM_N_SETTING; i++)
        s->value[i] = json_dumps(json_object_get(info, names[i]), JSON_ENCODE_ANY | JSON_COMPACT);
    s->is_known = 1;
}

void fm_settings_fini(fm_settings *s)
{
    for (int i = 0; i < FM_N_SETTING; i++) free(s->value[i]);
    *s = (fm_settings){0};
}

void fm_settings_compare(fm_str *out, const fm_settings *here, const fm_settings *there)
{
    int n = 0;
    for (int i = 0; i < FM_N_SETTING; i++) {
        const char *a = here->value[i], *b = there->value[i];
        if (a && b && strcmp(a, b))
            fm_str_printf(out, "%s%s is %.80s, there %.80s", n++ ? "; " : "", names[i], a, b);
    }
}
