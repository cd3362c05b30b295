/* SPDX-License-Identifier: Apache-2.0 */
/* SVG by hand: rectangles, lines and words.  Colours come from a style sheet
 * inside the file, with a second set for dark pages. */
#include "bench/plot.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH  = 760,
    LABEL  = 230, /* where bars begin */
    SCALE  = 4,   /* pixels of one percent */
    ROW    = 18,
    CURVE  = 220, /* height of the curve's frame */
    MARGIN = 24,
};

static const char *const style =
    "<style>text{font:12px system-ui,sans-serif;fill:#24292f}.h{font-weight:600}.q{fill:#57606a}"
    ".b{fill:#3b6fb6}.t{fill:#eaeef2}.g{stroke:#d0d7de;stroke-width:1}"
    ".c{fill:none;stroke:#3b6fb6;stroke-width:2}.l{fill:none;stroke:#8c959f;stroke-width:1.5;"
    "stroke-dasharray:5 4}.d{fill:#3b6fb6}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.q{fill:#9198a1}.b,.d{fill:#6ea8fe}"
    ".t{fill:#2d333b}.g{stroke:#3d444d}.c{stroke:#6ea8fe}.l{stroke:#9198a1}}</style>\n";

static const char curve_group[] = "decode by context";

static int is_bar(const fm_result *x)
{
    return x->bound > 0 && strcmp(x->group, curve_group);
}

static void bar(fm_str *s, int y, const fm_result *x)
{
    const double percent = fm_result_percent(x), shown = percent < 125 ? percent : 125;
    fm_str_printf(s, "<text class=\"q\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n",
                  LABEL - 8, y + 12, x->name);
    fm_str_printf(s, "<rect class=\"t\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"12\"/>\n", LABEL,
                  y + 2, 100 * SCALE);
    fm_str_printf(s, "<rect class=\"b\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"12\"/>\n", LABEL,
                  y + 2, shown * SCALE);
    fm_str_printf(s, "<text x=\"%d\" y=\"%d\">%.0f %% (%.4g %s)</text>\n",
                  LABEL + (int)fmax(shown, 100) * SCALE + 8, y + 12, percent, x->work / x->seconds,
                  x->unit);
}

/* Returns where the next thing goes. */
static int bars(fm_str *s, const fm_report *r, int y)
{
    const char *group = "";
    for (int i = 0; i < r->n; i++) {
        const fm_result *x = &r->result[i];
        if (!is_bar(x)) continue;
        if (strcmp(group, x->group)) {
            group = x->group;
            y += 10;
            fm_str_printf(s, "<text class=\"h\" x=\"%d\" y=\"%d\">%s</text>\n", LABEL, y + 12,
                          group);
            y += ROW;
        }
        bar(s, y, x);
        y += ROW;
    }
    return y;
}

typedef struct {
    const fm_report *r;
    int              first, n; /* results of the curve */
    int              y;        /* top of the frame */
    double           most;     /* seconds at the top */
} frame;

static double at_x(const frame *f, int i)
{
    return LABEL + (f->n > 1 ? 400.0 * i / (f->n - 1) : 0);
}

static double at_y(const frame *f, double seconds)
{
    return f->y + CURVE - CURVE * seconds / f->most;
}

static void line(fm_str *s, const frame *f, const char *class, int bound)
{
    fm_str_printf(s, "<polyline class=\"%s\" points=\"", class);
    for (int i = 0; i < f->n; i++) {
        const fm_result *x = &f->r->result[f->first + i];
        fm_str_printf(s, "%.1f,%.1f ", at_x(f, i), at_y(f, bound ? x->bound : x->seconds));
    }
    fm_str_puts(s, "\"/>\n");
}

static void points(fm_str *s, const frame *f)
{
    for (int i = 0; i < f->n; i++) {
        const fm_result *x = &f->r->result[f->first + i];
        fm_str_printf(s, "<circle class=\"d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", at_x(f, i),
                      at_y(f, x->seconds));
        fm_str_printf(s, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.1f</text>\n",
                      at_x(f, i), at_y(f, x->seconds) - 9, x->seconds * 1e3);
        fm_str_printf(s, "<text class=\"q\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                      at_x(f, i), f->y + CURVE + 16, x->name);
    }
}

static int curve(fm_str *s, const fm_report *r, int y)
{
    frame f = {.r = r, .y = y + 44};
    for (int i = 0; i < r->n; i++) {
        if (strcmp(r->result[i].group, curve_group)) continue;
        if (!f.n++) f.first = i;
        f.most = fmax(f.most, r->result[i].seconds * 1.15);
    }
    if (!f.n) return y;
    fm_str_printf(s, "<text class=\"h\" x=\"%d\" y=\"%d\">ms per decoded token by context, batch 1 "
                     "(dashed: the limit)</text>\n", LABEL, y + 22);
    for (int k = 0; k <= 4; k++)
        fm_str_printf(s, "<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LABEL,
                      LABEL + 400, at_y(&f, f.most * k / 4), at_y(&f, f.most * k / 4));
    line(s, &f, "l", 1);
    line(s, &f, "c", 0);
    points(s, &f);
    return f.y + CURVE + 30;
}

void fm_plot_report(const fm_report *r, fm_str *svg)
{
    fm_str    body = {0};
    int       y    = MARGIN;
    fm_str_printf(
        &body, "<text class=\"h\" x=\"%d\" y=\"%d\">%s: share of what the machine can do</text>\n",
        MARGIN, y, r->model);
    fm_str_printf(&body,
                  "<text class=\"q\" x=\"%d\" y=\"%d\">%d threads, %s, read %.1f GB/s, bf16 peak "
                  "%.0f GFLOP/s, commit %s</text>\n",
                  MARGIN, y + 18, r->limits.n_thread, fm_isa_name(r->limits.isa),
                  r->limits.read * 1e-9, r->limits.peak * 1e-9, r->commit);
    y = bars(&body, r, y + 28);
    y = curve(&body, r, y);
    fm_str_printf(svg,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\">\n",
                  WIDTH + 80, y + MARGIN, WIDTH + 80);
    fm_str_puts(svg, style);
    fm_str_add(svg, body.text, body.len);
    fm_str_puts(svg, "</svg>\n");
    fm_str_fini(&body);
}
