/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/output.h"

#include <stdio.h>
#include <time.h>

void fm_today(char out[16])
{
    const time_t now = time(NULL);
    strftime(out, 16, "%Y-%m-%d", gmtime(&now));
}

fm_status fm_write_text(const char *path, const fm_str *text)
{
    FILE *f = fopen(path, "w");
    if (!f) return fm_fail(FM_E_IO, "%s cannot be opened for writing", path);
    const int failed = fwrite(text->text, 1, text->len, f) != text->len;
    if (fclose(f) || failed) return fm_fail(FM_E_IO, "%s cannot be written", path);
    return FM_OK;
}

fm_status fm_write_json(const char *path, json_t *all)
{
    FM_BUG_UNLESS(all != NULL);
    const int failed = json_dump_file(all, path, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    json_decref(all);
    return failed ? fm_fail(FM_E_IO, "%s cannot be written", path) : FM_OK;
}
