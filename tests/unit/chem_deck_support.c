/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "chem_deck_support.h"

fm_deck good_deck(const char *text)
{
    fm_deck d = {0};
    if (fm_deck_parse(&d, "deck", text, strlen(text)) != FM_OK)
        fail_msg("%s, in\n%s", fm_why(), text);
    return d;
}

void bad_deck(const char *text, const char *why)
{
    fm_deck         d  = {0};
    const fm_status rc = fm_deck_parse(&d, "deck", text, strlen(text));
    if (rc == FM_OK) {
        fm_deck_fini(&d);
        fail_msg("accepted, though %s:\n%s", why, text);
    }
    assert_null(d.task); /* untouched on failure */
    if (!strstr(fm_why(), why)) fail_msg("\"%s\" does not say \"%s\"", fm_why(), why);
}

void near_to(double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol)) fail_msg("%.15g, want %.15g", got, want);
}
