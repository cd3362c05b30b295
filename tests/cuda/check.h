/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of kernels: one source, run over the emulator and on a GPU.
 *
 *     FM_TEST(rmsnorm_of_odd_rows)
 *     {
 *         fm_device<float> x(values);              a copy on the device
 *         FM_CHECK(fm_cuda_rmsnorm(&a, NULL) == FM_OK);
 *         FM_CHECK_EQUAL(y.host(), expected);      waits, copies back
 *     } */
#ifndef FM_TESTS_CUDA_CHECK_H
#define FM_TESTS_CUDA_CHECK_H

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <vector>

struct fm_test_case {
    const char *file, *name;
    void (*run)();
    fm_test_case *next;
    fm_test_case(const char *file_, const char *name_, void (*run_)());
};

#define FM_TEST(name)                                                                              \
    static void               name();                                                              \
    static const fm_test_case case_of_##name(__FILE__, #name, name);                               \
    static void               name()

/* Prints, counts, and goes on. */
void fm_check_failed(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define FM_CHECK(cond)                                                                             \
    do {                                                                                           \
        if (!(cond)) fm_check_failed(__FILE__, __LINE__, "%s", #cond);                             \
    } while (0)

#define FM_CHECK_EQUAL(got, expected) fm_check_equal(__FILE__, __LINE__, #got, (got), (expected))

/* Bit for bit; names the first element that differs. */
template <class T>
void fm_check_equal(const char *file, int line, const char *what, const std::vector<T> &got,
                    const std::vector<T> &expected)
{
    if (got.size() != expected.size()) {
        fm_check_failed(file, line, "%s has %zu elements, expected %zu", what, got.size(),
                        expected.size());
        return;
    }
    for (size_t i = 0; i < got.size(); i++)
        if (memcmp(&got[i], &expected[i], sizeof(T)) != 0) {
            fm_check_failed(file, line, "%s[%zu] of %zu is %.9g, expected %.9g", what, i,
                            got.size(), (double)got[i], (double)expected[i]);
            return;
        }
}

void fm_check_cuda(cudaError_t e, const char *what); /* ends the program */

/* An array on the device. */
template <class T> class fm_device
{
  public:
    explicit fm_device(const std::vector<T> &from) : n_(from.size())
    {
        take();
        fm_check_cuda(cudaMemcpy(p_, from.data(), n_ * sizeof(T), cudaMemcpyHostToDevice),
                      "upload");
    }
    explicit fm_device(size_t n, int byte = 0xff) : n_(n) /* every byte the same */
    {
        take();
        fm_check_cuda(cudaMemset(p_, byte, n_ * sizeof(T)), "fill");
    }
    fm_device(const fm_device &)            = delete;
    fm_device &operator=(const fm_device &) = delete;
    ~fm_device() { (void)cudaFree(p_); }

    T             *data() const { return (T *)p_; }
    size_t         size() const { return n_; }
    std::vector<T> host() const
    {
        std::vector<T> v(n_);
        fm_check_cuda(cudaDeviceSynchronize(), "wait");
        fm_check_cuda(cudaMemcpy(v.data(), p_, n_ * sizeof(T), cudaMemcpyDeviceToHost), "download");
        return v;
    }

  private:
    void   take() { fm_check_cuda(cudaMalloc(&p_, n_ ? n_ * sizeof(T) : 1), "allocation"); }
    void  *p_ = NULL;
    size_t n_;
};

/* An array of the host that the device reads and writes. */
template <class T> class fm_pinned
{
  public:
    explicit fm_pinned(size_t n) : n_(n)
    {
        fm_check_cuda(cudaMallocHost((void **)&p_, n_ ? n_ * sizeof(T) : 1), "pinned memory");
    }
    fm_pinned(const fm_pinned &)            = delete;
    fm_pinned &operator=(const fm_pinned &) = delete;
    ~fm_pinned() { (void)cudaFreeHost(p_); }

    T             *data() const { return p_; }
    std::vector<T> host() const
    {
        fm_check_cuda(cudaDeviceSynchronize(), "wait");
        return std::vector<T>(p_, p_ + n_);
    }

  private:
    T     *p_ = NULL;
    size_t n_;
};

/* Numbers that repeat: a stream per seed. */
struct fm_numbers {
    uint64_t state;
    explicit fm_numbers(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 1) {}
    uint32_t u32()
    {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(state >> 33) * 2654435761u ^ (uint32_t)(state >> 29);
    }
    int                below(int n) { return (int)((uint64_t)u32() * (uint64_t)n >> 32); }
    float              unit() { return (float)(u32() >> 8) * 0x1p-24f; } /* [0, 1) */
    float              between(float a, float b) { return a + (b - a) * unit(); }
    std::vector<float> floats(size_t n, float a, float b)
    {
        std::vector<float> v(n);
        for (float &x : v) x = between(a, b);
        return v;
    }
};

#endif
