/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/input/state.h"

/* The longest of: the letters the tag begins with as a name, its first two letters,
 * its first letter.  So He1 is helium, Hb hydrogen, oxygen_2 oxygen; 0: no element. */
static int leading_element(const char *tag)
{
    char   letters[FM_TAG_MAX];
    size_t n = 0;
    while (n < sizeof letters - 1 && isalpha((unsigned char)tag[n])) n++;
    memcpy(letters, tag, n);
    for (letters[n] = 0; n > 0; n = n > 2 ? 2 : n - 1) {
        letters[n]  = 0;
        const int z = fm_element_find(letters);
        if (z) return z;
    }
    return 0;
}

int fm__tag_element(const char *tag, int *of)
{
    *of = 0;
    if (isdigit((unsigned char)*tag)) {
        char      *end;
        const long z = strtol(tag, &end, 10);
        return *end == 0 && z >= 1 && z <= FM_Z_MAX ? (int)z : -1;
    }
    if (!strncasecmp(tag, "bq", 2)) {
        *of = leading_element(tag + 2);
        return 0;
    }
    if ((*tag | 32) == 'x' && strncasecmp(tag, "xe", 2) != 0) {
        *of = leading_element(tag + 1);
        return 0;
    }
    const int z = leading_element(tag);
    return z ? z : -1;
}
