/* SPDX-License-Identifier: Apache-2.0 */
/* Plain C loops without contraction or reassociation give the same bits with every
 * instruction set; the compiler makes a copy per level and the loader picks one.
 * The highest is named as a level: the name of a processor would be picked on that
 * processor alone.  (Sanitizers and the loader's pick do not go together.) */
#ifndef FM_BASE_CLONES_H
#define FM_BASE_CLONES_H

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) &&   \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FM_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define FM_CLONES
#endif

#endif
