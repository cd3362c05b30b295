/* SPDX-License-Identifier: Apache-2.0 */
/* FM_CLONES marks a function for multiversioning (target_clones): the compiler makes a copy per
 * instruction set and the loader picks one by ifunc.  Plain C loops without contraction or
 * reassociation give the same bits in every copy.
 *
 * The highest copy is named by an architecture level, x86-64-v4: the name of a processor would be
 * picked on that processor alone.  Sanitizers do not work with ifunc, so they get one copy. */
#ifndef FM_BASE_CLONES_H
#define FM_BASE_CLONES_H

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) &&   \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FM_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define FM_CLONES
#endif

#endif
