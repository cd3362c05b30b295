/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the pool that go to host memory and come back: as they were, and many in one transfer. */
#include "check.h"
#include "copies_model.h"

enum { N = 40 };

static fm_copies_result copy(const fm_copies_shape &s, const int *page, const int *slot, int n)
{
    const fm_copies_result r = fm_copy_there_and_back(&s, page, slot, n);
    if (r.why) fm_check_failed(__FILE__, __LINE__, "%s", r.why);
    FM_CHECK(r.n_wrong == 0);
    return r;
}

static int pages[N], in_line[N], scattered[N];

static void number()
{
    for (int i = 0; i < N; i++) {
        pages[i]     = i * 7 % 41;
        in_line[i]   = 3 + i;
        scattered[i] = i * i % 43 + (i * i / 43 % 2) * 43; /* runs of few, up and down */
    }
    for (int i = 0; i < N; i++) /* each once */
        for (int k = 0; k < i; k++)
            if (scattered[i] == scattered[k]) scattered[i] = 90 + i;
}

/* Neighbours in host memory cross the link together, as many as the stage holds. */
FM_TEST(pages_are_gathered)
{
    number();
    const fm_copies_shape  s = {5, 32, 4, 41, 0, 0, 16, 140};
    const fm_copies_result r = copy(s, pages, in_line, N);
    FM_CHECK(r.n_out == 3 && r.n_in == 3);
    FM_CHECK(copy(s, pages, in_line, 1).n_out == 1);
}

FM_TEST(pages_anywhere_arrive)
{
    number();
    for (int e4m3 = 0; e4m3 <= 1; e4m3++)
        for (int draft = 0; draft <= 1; draft++)
            for (int page_size : {1, 4, 16}) {
                const fm_copies_shape  s = {3, 24, page_size, 41, e4m3, draft, 7, 140};
                const fm_copies_result r = copy(s, pages, scattered, N);
                FM_CHECK(r.n_out < N && r.n_in < N);
                FM_CHECK(copy(s, pages, in_line, N).n_out == (N + 6) / 7);
            }
}

/* Enough bytes: they come in by groups of layers, in transfers of half a megabyte and more. */
FM_TEST(pages_come_in_by_layers)
{
    number();
    for (int e4m3 = 0; e4m3 <= 1; e4m3++)
        for (int draft = 0; draft <= 1; draft++) {
            const fm_copies_shape  s = {9, 256, 16, 41, e4m3, draft, 64, 140};
            const fm_copies_result r = copy(s, pages, in_line, N);
            FM_CHECK(r.n_out == 1);
            FM_CHECK(r.n_group == (e4m3 ? 2 + draft : 4));
        }
}
