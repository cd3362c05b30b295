/* SPDX-License-Identifier: Apache-2.0 */
/* The page in the program is complete and sends requests to its own server only. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "llm/serve/page/page.h"

static const char *find(const char *what, const char *from)
{
    const char *page = (const char *)fm_page_html;
    if (!from) from = page;
    return memmem(from, fm_page_html_len - (size_t)(from - page), what, strlen(what));
}

static void it_is_whole(void **state)
{
    (void)state;
    static const char first[] = "<!doctype html>", last[] = "</html>\n";
    assert_in_range(fm_page_html_len, 20000, 200000);
    assert_memory_equal(fm_page_html, first, sizeof first - 1);
    assert_memory_equal(fm_page_html + fm_page_html_len - (sizeof last - 1), last, sizeof last - 1);
    static const char *const parts[] = {
        "<style>",           "v1/chat/completions", "\"metrics\"",     "server_info",
        "reasoning_content", "default-src 'none'",  "loadDashboard();"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!find(parts[i], NULL)) fail_msg("no %s", parts[i]);
}

static void it_loads_nothing(void **state)
{
    (void)state;
    static const char *const loads[] = {"src=\"", "href=\"page.css", "@import", "url(", "//cdn"};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
        if (find(loads[i], NULL)) fail_msg("found %s", loads[i]);
    /* The addresses in it are the names of SVG and MathML, which are never fetched. */
    static const char svg[]    = "http://www.w3.org/2000/svg";
    static const char mathml[] = "http://www.w3.org/1998/Math/MathML\"";
    for (const char *at = find("http://", NULL); at; at = find("http://", at + 1))
        if (strncmp(at, svg, sizeof svg - 1) && strncmp(at, mathml, sizeof mathml - 1))
            fail_msg("found %.40s", at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_whole),
        cmocka_unit_test(it_loads_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
