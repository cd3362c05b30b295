/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_options.h"

fm_status fm_engine_open_with(fm_engine **e, const fm_engine_option *option, size_t n,
                              const fm_engine_hooks *hooks)
{
    fm_options *o  = NULL;
    fm_status   rc = fm_options_create(&o);
    for (size_t i = 0; rc == FM_OK && i < n; i++)
        rc = fm_options_set(o, option[i].name, option[i].value);
    if (rc == FM_OK) rc = hooks ? fm_engine_open_shown(e, o, hooks) : fm_engine_open(e, o);
    fm_options_destroy(o);
    return rc;
}
