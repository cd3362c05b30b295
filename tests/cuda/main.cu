/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every test that registered itself, or those whose name contains an
 * argument.  0: all passed; 1: some failed; 2: no usable GPU. */
#include <stdarg.h>
#include <stdlib.h>

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

static bool wanted(const fm_test_case *t, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strstr(t->name, argv[i]) || strstr(t->file, argv[i])) return true;
    return argc == 1;
}

int main(int argc, char **argv)
{
    int n_device = 0, n_run = 0, n_bad = 0;
    if (cudaGetDeviceCount(&n_device) != cudaSuccess || n_device == 0) {
        printf("no GPU: nothing was checked\n");
        return 2;
    }
    for (const fm_test_case *t = in_order(first); t; t = t->next) {
        if (!wanted(t, argc, argv)) continue;
        const char *slash  = strrchr(t->file, '/');
        const int   before = n_failed;
        t->run();
        fm_check_cuda(cudaDeviceSynchronize(), t->name);
        printf("%s %s: %s\n", n_failed == before ? "ok    " : "FAILED", slash ? slash + 1 : t->file,
               t->name);
        fflush(stdout);
        n_run++;
        n_bad += n_failed != before;
    }
    printf("%d tests, %d failed\n", n_run, n_bad);
    return n_bad || !n_run ? 1 : 0;
}
