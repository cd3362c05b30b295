/* SPDX-License-Identifier: Apache-2.0 */
/* Debug builds abort on any allocation made between begin and end on this
 * thread: a step of an engine must not need one.  Release builds do nothing. */
#ifndef FM_BASE_ALLOC_GUARD_H
#define FM_BASE_ALLOC_GUARD_H

#if defined(FM_DEBUG) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FM_ALLOC_GUARDED 1
void fm_alloc_guard_begin(void);
void fm_alloc_guard_end(void);

/* Around a call into a library that allocates as it likes: pause returns what
 * resume wants back. */
int  fm_alloc_guard_pause(void);
void fm_alloc_guard_resume(int paused);
#else
#define FM_ALLOC_GUARDED 0
static inline void fm_alloc_guard_begin(void) {}
static inline void fm_alloc_guard_end(void) {}
static inline int  fm_alloc_guard_pause(void) { return 0; }
static inline void fm_alloc_guard_resume(int paused) { (void)paused; }
#endif

#endif
