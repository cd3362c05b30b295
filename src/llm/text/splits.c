/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#define PCRE2_CODE_UNIT_WIDTH 8
#include "llm/text/splits_internal.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

enum {
    WINDOW         = 1024, /* start positions tried between two looks at the clock, */
    LONG_WINDOW    = 64,   /* and where each may cost long */
    LONG_TEXT      = 1 << 16,
    SEARCHES       = 256, /* successful searches between two looks */
    STEPS          = 100 * 1000,
    STEPS_PER_BYTE = 4, /* a run may be given back byte by byte, in a few alternatives */
    HEAP_KIB       = 64 * 1024,
    JIT_STACK_MOST = 1 << 20,
};

static const double seconds_at_least = 2.0, seconds_per_byte = 1e-6; /* usual is 3e-8 */

/* NULL: the pattern makes no sense, and fm_why() says why. */
static pcre2_code *compile(const fm_str *pattern, int index, const char *file)
{
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_USE_OFFSET_LIMIT;
    int            error;
    PCRE2_SIZE     at;
    PCRE2_UCHAR    why[128] = "out of memory";

    pcre2_compile_context *ctx = pcre2_compile_context_create(NULL);
    if (ctx) pcre2_set_newline(ctx, PCRE2_NEWLINE_LF);
    const char *text = pattern->text ? pattern->text : "";
    pcre2_code *code =
        ctx ? pcre2_compile((PCRE2_SPTR)text, pattern->len, options, &error, &at, ctx) : NULL;
    if (ctx && !code) pcre2_get_error_message(error, why, sizeof why);
    if (!code)
        fm_fail(FM_E_FORMAT, "%s: pre_tokenizer: split pattern %d: %s", file, index + 1,
                (const char *)why);
    pcre2_compile_context_free(ctx);
    return code;
}

fm_status fm__splits_add(fm__splits *s, const char *pattern, fm__split_keep keep, const char *file)
{
    if (s->n == FM__MAX_SPLITS)
        return fm_fail(FM_E_NOSUP, "%s: pre_tokenizer has more than %d splits", file,
                       FM__MAX_SPLITS);
    fm_str      text = {0};
    fm_status   rc   = fm__pattern_translate(pattern, file, &text);
    pcre2_code *code = rc == FM_OK ? compile(&text, s->n, file) : NULL;
    fm_str_fini(&text);
    if (!code) return rc == FM_OK ? FM_E_FORMAT : rc;

    const int jit   = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
    s->step[s->n++] = (fm__split){code, keep, jit};
    return FM_OK;
}

void fm__splits_fini(fm__splits *s)
{
    for (int i = 0; i < s->n; i++) pcre2_code_free(s->step[i].code);
    *s = (fm__splits){0};
}

struct fm__splits_scratch {
    pcre2_match_data    *match[FM__MAX_SPLITS];
    pcre2_match_context *limits;
    pcre2_jit_stack     *stack;
    int                  n;
    int                  searches; /* until the next look at the clock */
    int                  looked;   /* has the time begun? */
    double               began, began_thread, allowed;
};

fm_status fm__splits_scratch_create(fm__splits_scratch **out, const fm__splits *s)
{
    fm__splits_scratch *x = calloc(1, sizeof *x);
    if (!x) return fm_fail(FM_E_OOM, "split scratch");
    x->limits  = pcre2_match_context_create(NULL);
    x->stack   = pcre2_jit_stack_create(32 * 1024, JIT_STACK_MOST, NULL);
    int failed = !x->limits || !x->stack;
    for (x->n = 0; x->n < s->n && !failed; x->n++)
        failed = !(x->match[x->n] = pcre2_match_data_create(1, NULL));
    if (failed) {
        fm__splits_scratch_destroy(x);
        return fm_fail(FM_E_OOM, "split scratch");
    }
    pcre2_jit_stack_assign(x->limits, NULL, x->stack);
    pcre2_set_heap_limit(x->limits, HEAP_KIB);
    *out = x;
    return FM_OK;
}

void fm__splits_scratch_destroy(fm__splits_scratch *x)
{
    if (!x) return;
    for (int i = 0; i < x->n; i++) pcre2_match_data_free(x->match[i]);
    pcre2_match_context_free(x->limits);
    pcre2_jit_stack_free(x->stack);
    free(x);
}

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void fm__splits_begin(fm__splits_scratch *x, size_t text_bytes)
{
    x->searches = SEARCHES;
    x->looked   = 0;
    x->allowed  = seconds_at_least + seconds_per_byte * (double)text_bytes;
}

/* The limit is on this thread's CPU time, since a machine that is busy or suspended is no reason
 * to refuse a text.  Reading it is expensive, and it is never more than the elapsed time, which is
 * read first. */
static fm_status look_at_clock(fm__splits_scratch *x, int step)
{
    x->searches = SEARCHES;
    if (!x->looked) {
        x->looked       = 1;
        x->began        = fm_now();
        x->began_thread = thread_seconds();
    }
    if (fm_now() - x->began < x->allowed || thread_seconds() - x->began_thread < x->allowed)
        return FM_OK;
    return fm_fail(FM_E_FORMAT, "split pattern %d of the tokenizer takes too long on this text",
                   step + 1);
}

struct walk {
    const fm__splits   *splits;
    fm__splits_scratch *scratch;
    fm__piece_fn       *emit;
    void               *to;
};

static size_t next_character(const char *text, size_t n, size_t at)
{
    while (++at < n && ((unsigned char)text[at] & 0xc0) == 0x80) continue;
    return at;
}

static int match_once(const struct walk *w, int step, const char *text, size_t n, size_t from,
                      size_t last_start)
{
    const fm__split     *s     = &w->splits->step[step];
    pcre2_match_context *ctx   = w->scratch->limits;
    pcre2_match_data    *m     = w->scratch->match[step];
    const size_t         steps = STEPS + STEPS_PER_BYTE * n;
    pcre2_set_offset_limit(ctx, last_start);
    pcre2_set_match_limit(ctx, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    return s->jit ? pcre2_jit_match(s->code, (PCRE2_SPTR)text, n, from, 0, m, ctx)
                  : pcre2_match(s->code, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK, m, ctx);
}

/* The first match that begins at or after `from`; *begin = n when there is
 * none.  PCRE2's limits count from each start position anew, hence windows
 * and a clock. */
static fm_status search(const struct walk *w, int step, const char *text, size_t n, size_t from,
                        size_t *begin, size_t *end)
{
    const size_t window = n < LONG_TEXT ? WINDOW : LONG_WINDOW;
    *begin = *end = n;
    if (--w->scratch->searches <= 0) FM_TRY(look_at_clock(w->scratch, step));
    while (from < n) {
        const int rc = match_once(w, step, text, n, from, from + window);
        if (rc >= 0) {
            const PCRE2_SIZE *v = pcre2_get_ovector_pointer(w->scratch->match[step]);
            *begin              = v[0];
            *end                = v[1];
            return FM_OK;
        }
        if (rc != PCRE2_ERROR_NOMATCH)
            return fm_fail(FM_E_FORMAT, "split pattern %d of the tokenizer gives up on this text",
                           step + 1);
        if (n - from <= window) return FM_OK;
        FM_TRY(look_at_clock(w->scratch, step));
        from = next_character(text, n, from + window);
    }
    return FM_OK;
}

static fm_status split(const struct walk *w, int step, const char *text, size_t n)
{
    if (n == 0) return FM_OK;
    if (step == w->splits->n) return w->emit(w->to, text, n);

    const fm__split_keep keep = w->splits->step[step].keep;
    size_t               gap = 0, from = 0;
    while (from < n) {
        size_t begin, end;
        FM_TRY(search(w, step, text, n, from, &begin, &end));
        if (keep != FM__KEEP_MATCHES) FM_TRY(split(w, step + 1, text + gap, begin - gap));
        if (keep != FM__KEEP_GAPS) FM_TRY(split(w, step + 1, text + begin, end - begin));
        gap  = end;
        from = end > begin ? end : next_character(text, n, end);
    }
    return keep == FM__KEEP_MATCHES ? FM_OK : split(w, step + 1, text + gap, n - gap);
}

fm_status fm__splits_run(const fm__splits *s, fm__splits_scratch *x, const char *text, size_t n,
                         fm__piece_fn *emit, void *to)
{
    const struct walk w = {s, x, emit, to};
    return split(&w, 0, text, n);
}
