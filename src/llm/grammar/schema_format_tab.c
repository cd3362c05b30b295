/* SPDX-License-Identifier: Apache-2.0 */
/* Formats as regular expressions.  Each is a subset of its RFC's texts, so what
 * is written is valid; years are 0001 to 9999 and seconds end at 59, as programs
 * that read dates want it. */
#include <string.h>

#include "llm/grammar/schema_internal.h"

/* clang-format off */
#define YEAR  "(?:000[1-9]|00[1-9]\\d|0[1-9]\\d\\d|[1-9]\\d{3})"
#define LEAP  "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
#define DATE  "(?:" YEAR "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])" \
              "|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))|" LEAP "-02-29)"
#define ZONE  "(?:Z|[+\\-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define TIME  "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?" ZONE
#define COUNT "\\d{1,4}"
#define CLOCK "(?:T(?:" COUNT "H(?:" COUNT "M(?:" COUNT "S)?)?|" COUNT "M(?:" COUNT "S)?|" COUNT "S))"
#define DAYS  "(?:" COUNT "Y(?:" COUNT "M(?:" COUNT "D)?)?|" COUNT "M(?:" COUNT "D)?|" COUNT "D)"

#define HEX   "[0-9a-fA-F]"
#define UUID(version, variant) HEX "{8}-" HEX "{4}-" version HEX "{3}-" variant HEX "{3}-" HEX "{12}"

#define LABEL "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,61}[A-Za-z0-9])?"
#define HOST  LABEL "(?:\\." LABEL "){0,3}"
#define ATOM  "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\-]{1,15}"
#define PART  "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,30}[A-Za-z0-9])?"
#define TOP   "[A-Za-z]{2,24}"
#define EMAIL ATOM "(?:\\." ATOM "){0,3}@(?:" PART "\\.){1,3}" TOP /* at most 63 before the @ */

#define BYTE  "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define IPV4  BYTE "(?:\\." BYTE "){3}"
#define H16   HEX "{1,4}"
#define H(n)  "(?:" H16 ":){" #n "}"
#define TAIL(n) "(?::" H16 "){1," #n "}"
#define IPV6  "(?:" H(7) H16 "|(?:" H16 ":){1,7}:|" H(1) TAIL(6) "|" H(2) TAIL(5) "|" H(3) TAIL(4) \
              "|" H(4) TAIL(3) "|" H(5) TAIL(2) "|" H(6) ":" H16 "|:" TAIL(7) "|::)"

#define PCHAR "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:@]|%" HEX HEX ")"
#define QUERY "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:@/?]|%" HEX HEX ")"
#define URI   "[A-Za-z][A-Za-z0-9+.\\-]{0,15}:(?://" HOST "(?::\\d{1,5})?(?:/" PCHAR "*)*" \
              "|/?" PCHAR "+(?:/" PCHAR "*)*)(?:\\?" QUERY "*)?(?:#" QUERY "*)?"

static const struct {
    const char *name, *regex;
} format[] = {
    {"date-time",    "^" DATE "T" TIME "$"},
    {"date",         "^" DATE "$"},
    {"time",         "^" TIME "$"},
    {"duration",     "^P(?:" DAYS CLOCK "?|" CLOCK "|" COUNT "W)$"},
    {"uuid",         "^" UUID(HEX, HEX) "$"},
    {"uuid1",        "^" UUID("1", "[89abAB]") "$"},
    {"uuid3",        "^" UUID("3", "[89abAB]") "$"},
    {"uuid4",        "^" UUID("4", "[89abAB]") "$"},
    {"uuid5",        "^" UUID("5", "[89abAB]") "$"},
    {"uuid6",        "^" UUID("6", "[89abAB]") "$"},
    {"uuid7",        "^" UUID("7", "[89abAB]") "$"},
    {"uuid8",        "^" UUID("8", "[89abAB]") "$"},
    {"email",        "^" EMAIL "$"},
    {"idn-email",    "^" EMAIL "$"},
    {"hostname",     "^" HOST "$"},
    {"idn-hostname", "^" HOST "$"},
    {"ipv4",         "^" IPV4 "$"},
    {"ipv6",         "^" IPV6 "$"},
    {"uri",          "^" URI "$"},
    {"iri",          "^" URI "$"},
};
/* clang-format on */

const char *fm__schema_format(const json_t *name)
{
    const char *s = json_string_value(name);
    for (size_t i = 0; s && i < sizeof format / sizeof *format; i++)
        if (!strcmp(format[i].name, s)) return format[i].regex;
    return NULL;
}
