/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/page.h"

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2733;--dim:#5b6b7b;--line:#d5dde5;--paper:#fff;"
    "--good:#0a6e8a;--bad:#b3452c;--fill:#e7f1f5}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e3e9ef;--dim:#9aa8b5;--line:#34414d;"
    "--paper:#131a21;--good:#5cc3dd;--bad:#f08a6c;--fill:#1d2b35}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:68rem;padding:1.5rem;background:var(--paper);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}"
    "h1{font-size:1.4rem}h2{font-size:1.05rem;margin-top:2rem}"
    ".tiles{display:flex;flex-wrap:wrap;gap:.75rem}"
    ".tile{background:var(--fill);border-radius:.5rem;padding:.6rem 1rem;min-width:9rem}"
    ".tile b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums}"
    ".tile span{color:var(--dim)}"
    "pre{background:var(--fill);border-radius:.5rem;padding:.75rem 1rem;overflow-x:auto;"
    "white-space:pre-wrap;overflow-wrap:anywhere}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));gap:"
    "1rem}"
    "svg{width:100%;height:auto;display:block}"
    "svg text{fill:var(--dim);font:11px system-ui,sans-serif}svg "
    ".title{fill:var(--ink);font-weight:600}"
    "svg .axis{stroke:var(--line);fill:none}svg .dot{fill:var(--good);fill-opacity:.55}"
    "svg .bad{fill:var(--bad)}svg .best{stroke:var(--good);fill:none;stroke-width:2}"
    "svg .win{fill:none;stroke:var(--ink);stroke-width:1.5}svg .bar{fill:var(--good)}"
    ".scroll{overflow-x:auto}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.85rem}"
    "th,td{padding:.25rem .6rem;border-bottom:1px solid "
    "var(--line);text-align:left;white-space:nowrap}"
    "td.n{text-align:right}tr.win td{font-weight:600}td.why{white-space:normal;min-width:14rem}"
    ".failed,.timeout,.unfit{color:var(--bad)}.pruned{color:var(--dim)}";

void fm_page_text(fm_str *out, const char *text)
{
    for (; *text; text++) switch (*text) {
        case '&': fm_str_puts(out, "&amp;"); break;
        case '<': fm_str_puts(out, "&lt;"); break;
        case '>': fm_str_puts(out, "&gt;"); break;
        case '"': fm_str_puts(out, "&quot;"); break;
        default: fm_str_add(out, text, 1);
        }
}

void fm_page_begin(fm_str *out, const char *title)
{
    fm_str_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                     "<link rel=\"icon\" href=\"data:,\"><title>");
    fm_page_text(out, title);
    fm_str_printf(out, "</title><style>%s</style></head>\n<body><h1>", style);
    fm_page_text(out, title);
    fm_str_puts(out, "</h1>\n");
}

void fm_page_end(fm_str *out) { fm_str_puts(out, "</body></html>\n"); }

void fm_page_tile(fm_str *out, const char *value, const char *what)
{
    fm_str_puts(out, "<div class=\"tile\"><b>");
    fm_page_text(out, value);
    fm_str_puts(out, "</b><span>");
    fm_page_text(out, what);
    fm_str_puts(out, "</span></div>\n");
}
