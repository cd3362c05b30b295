/* SPDX-License-Identifier: Apache-2.0 */
/* Cells that an earlier run of the same ablation measured, from the file that its --json wrote. */
#include <stdlib.h>
#include <string.h>

#include "ablate_cell.h"
#include "json/read.h"
#include "tune/words.h"

void fm_cell_command(fm_str *out, const fm_ablation *a, const fm_cell *c)
{
    fm_word_list words = {0};
    fm_cell_words(&words, a, c, "fathom");
    fm_words_quote(out, words.word);
    fm_word_list_fini(&words);
}

static fm_status take(fm_cell *c, const json_t *from, fm_json_at at)
{
    const char *answers = NULL;
    char       *end     = NULL;
    FM_TRY(fm_json_real(&c->throughput, from, "total_throughput", 0, 1e15, at));
    FM_TRY(fm_json_real(&c->ttft_ms, from, "mean_ttft_ms", 0, 1e15, at));
    FM_TRY(fm_json_real(&c->memory, from, "memory_bytes", 0, 1e18, at));
    FM_TRY(fm_json_string(&answers, from, "answers", at));
    c->hash = strtoull(answers, &end, 16);
    if (strlen(answers) != 16 || *end)
        return fm_fail(FM_E_FORMAT, "%s: %sanswers: \"%s\" is no hash", at.file, at.scope, answers);
    c->state      = FM_CELL_OK;
    c->is_earlier = 1;
    return FM_OK;
}

static int is_same(const json_t *from, const char *command)
{
    const char *state = json_string_value(json_object_get(from, "state"));
    const char *as    = json_string_value(json_object_get(from, "command"));
    return state && as && !strcmp(state, "ok") && !strcmp(as, command);
}

static fm_status look_for(fm_cell *c, const char *command, const json_t *results, const char *file)
{
    size_t        i;
    const json_t *from;
    json_array_foreach(results, i, from)
    {
        if (is_same(from, command)) return take(c, from, (fm_json_at){file, "results."});
    }
    return FM_OK;
}

static fm_status look_for_all(fm_ablation *a, const json_t *o)
{
    const char   *file    = a->options.continues;
    const json_t *results = json_object_get(o, "results");
    fm_status     rc      = FM_OK;
    fm_str        command = {0};
    if (!json_is_array(results))
        return fm_fail(FM_E_FORMAT, "%s is not a file of fathom ablate --json", file);
    for (int i = 0; i < a->n_cell && rc == FM_OK; i++) {
        fm_str_clear(&command);
        fm_cell_command(&command, a, &a->cell[i]);
        rc = look_for(&a->cell[i], command.text, results, file);
    }
    fm_str_fini(&command);
    return rc;
}

fm_status fm_ablate_continue(fm_ablation *a)
{
    json_t *o = NULL;
    if (!a->options.continues) return FM_OK;
    FM_TRY(fm_json_load(&o, a->options.continues));
    const fm_status rc = look_for_all(a, o);
    json_decref(o);
    return rc;
}
