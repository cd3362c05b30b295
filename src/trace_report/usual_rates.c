/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/usual_rates.h"

#include <string.h>
#include <unistd.h>

#include "base/environment.h"

static int knows(const fm_rates *r, const char *host)
{
    for (int i = 0; i < r->n_rank; i++)
        if (!strcmp(r->rank[i].host, host)) return 1;
    return 0;
}

int fm_trace_usual_rates(fm_rates *out, const fm_trace_job *j)
{
    fm_str path = {0};
    fm_environment_cache_path(&path, "rates.json");
    int known = path.len && access(path.text, R_OK) == 0 && fm_rates_load(out, path.text) == FM_OK;
    const int is_loaded = known;
    for (int i = 0; known && i < j->n; i++) known = knows(out, j->file[i].head.host);
    if (is_loaded && !known) fm_rates_fini(out);
    fm_str_fini(&path);
    return known;
}
