/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's small vectors, with its alignments. */
#ifndef FM_TESTS_CUDA_EMULATOR_VECTOR_TYPES_H
#define FM_TESTS_CUDA_EMULATOR_VECTOR_TYPES_H

#define FM_EMU_VECTORS(T, name)                                                                    \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                             \
    struct name##3 { T x, y, z; };                                                                 \
    struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; };             \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                              \
    static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                      \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

FM_EMU_VECTORS(char, char)
FM_EMU_VECTORS(unsigned char, uchar)
FM_EMU_VECTORS(short, short)
FM_EMU_VECTORS(unsigned short, ushort)
FM_EMU_VECTORS(int, int)
FM_EMU_VECTORS(unsigned, uint)
FM_EMU_VECTORS(float, float)
FM_EMU_VECTORS(double, double)
FM_EMU_VECTORS(long long, longlong)
FM_EMU_VECTORS(unsigned long long, ulonglong)
#undef FM_EMU_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

#endif
