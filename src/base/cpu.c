/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/cpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

static const char *const name[] = {"ref", "avx2", "avx512", "amx"};

static fm_isa         detected, allowed;
static int            has_vbmi;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
/* AMX tiles are a state the kernel hands out on request, per process. */
static int amx_permitted(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0) return 1;
    FM_WARN("cpu", "this CPU has AMX but the kernel refused its tiles; using avx512");
    return 0;
}

static int detect_vbmi(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
}

static fm_isa detect(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return FM_ISA_REF;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni"))
        return FM_ISA_AVX2;
    unsigned eax = 7, ebx, ecx = 0, edx;
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    const int has_amx = (edx >> 22 & 1) && (edx >> 24 & 1) && (edx >> 25 & 1) && /* bf16, tile, int8 */
                        detect_vbmi() && __builtin_cpu_supports("gfni");
    return has_amx && amx_permitted() ? FM_ISA_AMX : FM_ISA_AVX512;
}
#else
static int detect_vbmi(void)
{
    return 0;
}

static fm_isa detect(void)
{
    return FM_ISA_REF;
}
#endif

static void look(void)
{
    detected = allowed = detect();
    has_vbmi           = detected >= FM_ISA_AVX512 && detect_vbmi();
    const char *wish   = getenv("FM_ISA");
    if (!wish || !*wish) return;
    for (int i = 0; i < 4; i++)
        if (!strcmp(wish, name[i])) {
            if ((fm_isa)i > detected)
                FM_WARN("cpu", "FM_ISA=%s is above this machine's %s", wish, name[detected]);
            else
                allowed = (fm_isa)i;
            return;
        }
    FM_WARN("cpu", "FM_ISA=%s is none of ref, avx2, avx512, amx", wish);
}

fm_isa fm_cpu_isa(void)
{
    pthread_once(&once, look);
    return allowed;
}

int fm_cpu_detects(fm_isa isa)
{
    pthread_once(&once, look);
    return isa <= detected;
}

int fm_cpu_has_vbmi(void)
{
    pthread_once(&once, look);
    return has_vbmi;
}

const char *fm_isa_name(fm_isa isa)
{
    return name[isa];
}
