/* SPDX-License-Identifier: Apache-2.0 */
/* A library with the calls of NVML that are made here: two GPUs, of which the second is hot, has
 * half its lanes and has lost a link.  It lacks power limits, as an old driver does. */
#include <stdio.h>
#include <string.h>

#define CALL __attribute__((visibility("default"))) int

CALL nvmlInit_v2(void);
CALL nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out);
CALL nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **out);
CALL nvmlDeviceGetName(void *d, char *out, unsigned size);
CALL nvmlSystemGetDriverVersion(char *out, unsigned size);
CALL nvmlDeviceGetClockInfo(void *d, int kind, unsigned *out);
CALL nvmlDeviceGetMaxClockInfo(void *d, int kind, unsigned *out);
CALL nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *out);
CALL nvmlDeviceGetTemperature(void *d, int sensor, unsigned *out);
CALL nvmlDeviceGetPowerUsage(void *d, unsigned *out);
CALL nvmlDeviceGetCurrPcieLinkWidth(void *d, unsigned *out);
CALL nvmlDeviceGetMaxPcieLinkWidth(void *d, unsigned *out);
CALL nvmlDeviceGetEccMode(void *d, unsigned *now, unsigned *later);
CALL nvmlDeviceGetTotalEccErrors(void *d, int kind, int since, unsigned long long *out);
CALL nvmlDeviceGetNvLinkState(void *d, unsigned link, unsigned *out);

enum { NO_SUCH = 6, N = 2, LINKS = 4 };

static char device[N];

static int is_second(void *d) { return d == &device[1]; }

static int give(unsigned *out, unsigned x)
{
    *out = x;
    return 0;
}

int nvmlInit_v2(void) { return 0; }

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out)
{
    if (i >= N) return NO_SUCH;
    *out = &device[i];
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **out)
{
    return nvmlDeviceGetHandleByIndex_v2(!strcmp(pci, "0000:1B:00.0") ? 1 : N, out);
}

int nvmlDeviceGetName(void *d, char *out, unsigned size)
{
    snprintf(out, size, "Stand-in %d", is_second(d));
    return 0;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    snprintf(out, size, "555.1");
    return 0;
}

int nvmlDeviceGetClockInfo(void *d, int kind, unsigned *out)
{
    return give(out, kind == 2 ? 3200 : is_second(d) ? 900 : 1980);
}

int nvmlDeviceGetMaxClockInfo(void *d, int kind, unsigned *out)
{
    (void)d;
    return give(out, kind == 2 ? 3201 : 1980);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *out)
{
    *out = is_second(d) ? 0x40 | 0x04 : 0x01;
    return 0;
}

int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *out)
{
    (void)sensor;
    return give(out, is_second(d) ? 91 : 44);
}

int nvmlDeviceGetPowerUsage(void *d, unsigned *out)
{
    (void)d;
    return give(out, 650400);
}

int nvmlDeviceGetCurrPcieLinkWidth(void *d, unsigned *out)
{
    return give(out, is_second(d) ? 8 : 16);
}

int nvmlDeviceGetMaxPcieLinkWidth(void *d, unsigned *out)
{
    (void)d;
    return give(out, 16);
}

int nvmlDeviceGetEccMode(void *d, unsigned *now, unsigned *later)
{
    (void)d;
    *later = 1;
    return give(now, 1);
}

int nvmlDeviceGetTotalEccErrors(void *d, int kind, int since, unsigned long long *out)
{
    (void)since;
    *out = is_second(d) ? (kind ? 2 : 30) : 0;
    return 0;
}

int nvmlDeviceGetNvLinkState(void *d, unsigned link, unsigned *out)
{
    if (link >= LINKS) return NO_SUCH;
    return give(out, !(is_second(d) && link == 2));
}
