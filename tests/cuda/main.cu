/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every test that registered itself, or those whose file or name contains
 * an argument; --list names them instead.
 * 0: all passed; 1: some failed, or none has such a name; 2: no usable GPU. */
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

static fm_test_case *first;
static int           n_failed;

fm_test_case::fm_test_case(const char *file_, const char *name_, void (*run_)())
    : file(file_), name(name_), run(run_), next(first)
{
    first = this;
}

void fm_check_failed(const char *file, int line, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("  %s:%d: ", file, line);
    vprintf(format, list);
    putchar('\n');
    va_end(list);
    n_failed++;
}

void fm_check_cuda(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    printf("  %s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

static fm_test_case *in_order(fm_test_case *list)
{
    fm_test_case *back = NULL;
    while (list) {
        fm_test_case *next = list->next;
        list->next         = back;
        back               = list;
        list               = next;
    }
    return back;
}

static bool wanted(const fm_test_case *t, int n, char **names)
{
    for (int i = 0; i < n; i++)
        if (strstr(t->name, names[i]) || strstr(t->file, names[i])) return true;
    return n == 0;
}

static const char *file_of(const fm_test_case *t)
{
    const char *slash = strrchr(t->file, '/');
    return slash ? slash + 1 : t->file;
}

static double now_ms()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static bool passes(const fm_test_case *t)
{
    const int    before = n_failed;
    const double from   = now_ms();
    t->run();
    fm_check_cuda(cudaDeviceSynchronize(), t->name);
    printf("%s %s: %s (%.0f ms)\n", n_failed == before ? "ok    " : "FAILED", file_of(t), t->name,
           now_ms() - from);
    fflush(stdout);
    return n_failed == before;
}

static int list(const fm_test_case *t, int n, char **names)
{
    for (; t; t = t->next)
        if (wanted(t, n, names)) printf("%s: %s\n", file_of(t), t->name);
    return 0;
}

/* Where a test asks the CPU's back end, the plain arithmetic answers: another level's bits would
 * part answers at other near-ties, and what passes here would not there. */
int main(int argc, char **argv)
{
    setenv("FM_ISA", "ref", 0);
    int                 n_device = 0, n_run = 0, n_bad = 0;
    const fm_test_case *all = in_order(first);
    if (argc > 1 && strcmp(argv[1], "--list") == 0) return list(all, argc - 2, argv + 2);
    if (cudaGetDeviceCount(&n_device) != cudaSuccess || n_device == 0) {
        printf("no GPU: nothing was checked\n");
        return 2;
    }
    for (const fm_test_case *t = all; t; t = t->next) {
        if (!wanted(t, argc - 1, argv + 1)) continue;
        n_run++;
        n_bad += !passes(t);
    }
    printf("%d tests, %d failed\n", n_run, n_bad);
    return n_bad || !n_run ? 1 : 0;
}
