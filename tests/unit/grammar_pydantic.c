/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas that Pydantic, openai and instructor write: texts that Pydantic accepts
 * can be written, those it refuses cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grammar_support.h"
#include "json/read.h"

static void check_texts(fm_grammar *g, const json_t *one, const char *key, int is_complete)
{
    size_t        i;
    const json_t *text;
    json_array_foreach (json_object_get(one, key), i, text)
        if ((reads(g, json_string_value(text)) == 2) != is_complete)
            fail_msg("%s: %s %s", json_string_value(json_object_get(one, "name")),
                     is_complete ? "refuses" : "takes", json_string_value(text));
}

static void texts(void **state)
{
    (void)state;
    json_t       *all = NULL;
    const json_t *one;
    size_t        i;
    assert_int_equal(fm_json_load(&all, FM_TEST_DATA "/schemas/pydantic.json"), FM_OK);
    assert_true(json_array_size(all) > 10);
    json_array_foreach (all, i, one) {
        char       *schema = json_dumps(json_object_get(one, "schema"), JSON_PRESERVE_ORDER);
        fm_grammar *g      = get(FM_GRAMMAR_JSON_SCHEMA, schema);
        check_texts(g, one, "valid", 1);
        check_texts(g, one, "invalid", 0);
        fm_grammar_release(g);
        free(schema);
    }
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
