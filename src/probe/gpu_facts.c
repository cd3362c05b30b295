/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/gpu_facts.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libnvidia-ml.so.1"

typedef void *device; /* nvmlDevice_t */

enum { DONE = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, CORRECTED = 0, UNCORRECTED = 1, MOST_LINKS = 18 };

/* Calls of NVML; all but the first row may be missing in an old driver. */
#define NEEDED(X)                                                                                  \
    X(init, "nvmlInit_v2", (void))                                                                 \
    X(by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned, device *))
#define OPTIONAL(X)                                                                                \
    X(by_pci, "nvmlDeviceGetHandleByPciBusId_v2", (const char *, device *))                        \
    X(name, "nvmlDeviceGetName", (device, char *, unsigned))                                       \
    X(driver, "nvmlSystemGetDriverVersion", (char *, unsigned))                                    \
    X(clock, "nvmlDeviceGetClockInfo", (device, int, unsigned *))                                  \
    X(clock_most, "nvmlDeviceGetMaxClockInfo", (device, int, unsigned *))                          \
    X(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons", (device, unsigned long long *))       \
    X(event_reasons, "nvmlDeviceGetCurrentClocksEventReasons", (device, unsigned long long *))     \
    X(temperature, "nvmlDeviceGetTemperature", (device, int, unsigned *))                          \
    X(power, "nvmlDeviceGetPowerUsage", (device, unsigned *))                                      \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (device, unsigned *))                        \
    X(generation, "nvmlDeviceGetCurrPcieLinkGeneration", (device, unsigned *))                     \
    X(generation_most, "nvmlDeviceGetMaxPcieLinkGeneration", (device, unsigned *))                 \
    X(width, "nvmlDeviceGetCurrPcieLinkWidth", (device, unsigned *))                               \
    X(width_most, "nvmlDeviceGetMaxPcieLinkWidth", (device, unsigned *))                           \
    X(ecc_mode, "nvmlDeviceGetEccMode", (device, unsigned *, unsigned *))                          \
    X(ecc_errors, "nvmlDeviceGetTotalEccErrors", (device, int, int, unsigned long long *))         \
    X(link_state, "nvmlDeviceGetNvLinkState", (device, unsigned, unsigned *))

static struct {
#define FIELD(field, symbol, args) int(*field) args;
    NEEDED(FIELD) OPTIONAL(FIELD)
#undef FIELD
} nvml;

/* 1: open; -1: cannot be. */
static int state;

/* A pointer to a function through a pointer to data, as POSIX has it. */
static int find(void *library, void *to, const char *symbol)
{
    *(void **)to = dlsym(library, symbol);
    return *(void **)to != NULL;
}

static int open_library(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* kept until the process ends */
    int   has_all = library != NULL;
    if (!library) return 0;
#define FIND(field, symbol, args) has_all &= find(library, &nvml.field, symbol);
    NEEDED(FIND)
#undef FIND
#define LOOK(field, symbol, args) (void)find(library, &nvml.field, symbol);
    OPTIONAL(LOOK)
#undef LOOK
    return has_all && nvml.init() == DONE;
}

static int is_open(void)
{
    if (!state) state = open_library() ? 1 : -1;
    return state > 0;
}

static int number(int (*ask)(device, unsigned *), device d)
{
    unsigned x = 0;
    return ask && ask(d, &x) == DONE ? (int)x : -1;
}

static int number_of(int (*ask)(device, int, unsigned *), device d, int which)
{
    unsigned x = 0;
    return ask && ask(d, which, &x) == DONE ? (int)x : -1;
}

static int64_t errors(device d, int kind)
{
    unsigned long long x = 0;
    return nvml.ecc_errors && nvml.ecc_errors(d, kind, 0, &x) == DONE ? (int64_t)x : -1;
}

static void read_links(fm_gpu_facts *f, device d)
{
    unsigned active = 0;
    for (unsigned i = 0; nvml.link_state && i < MOST_LINKS; i++)
        if (nvml.link_state(d, i, &active) == DONE) {
            f->n_link        = f->n_link < 0 ? 1 : f->n_link + 1;
            f->n_link_active = f->n_link_active < 0 ? 0 : f->n_link_active;
            f->n_link_active += active != 0;
        }
}

static void read_state(fm_gpu_facts *f, device d)
{
    unsigned long long reasons = 0;
    unsigned           on = 0, later = 0;
    const int          power = number(nvml.power, d), limit = number(nvml.power_limit, d);
    f->mhz             = number_of(nvml.clock, d, CLOCK_SM);
    f->mhz_most        = number_of(nvml.clock_most, d, CLOCK_SM);
    f->mhz_memory      = number_of(nvml.clock, d, CLOCK_MEMORY);
    f->mhz_memory_most = number_of(nvml.clock_most, d, CLOCK_MEMORY);
    f->celsius         = number_of(nvml.temperature, d, 0);
    f->watt            = power < 0 ? -1 : power / 1000;
    f->watt_limit      = limit < 0 ? -1 : limit / 1000;
    if (!nvml.throttle) nvml.throttle = nvml.event_reasons; /* its name in later drivers */
    if (nvml.throttle && nvml.throttle(d, &reasons) == DONE) f->throttled = (int64_t)reasons;
    if (nvml.ecc_mode && nvml.ecc_mode(d, &on, &later) == DONE) f->has_ecc = on != 0;
}

static void read_bus(fm_gpu_facts *f, device d)
{
    f->pcie_generation      = number(nvml.generation, d);
    f->pcie_generation_most = number(nvml.generation_most, d);
    f->pcie_width           = number(nvml.width, d);
    f->pcie_width_most      = number(nvml.width_most, d);
}

static int find_device(device *out, int index, const char *pci)
{
    if (!is_open()) return 0;
    if (pci && nvml.by_pci) return nvml.by_pci(pci, out) == DONE;
    return nvml.by_index((unsigned)index, out) == DONE;
}

static const fm_gpu_facts nothing = {
    .index                = -1,
    .mhz                  = -1,
    .mhz_most             = -1,
    .mhz_memory           = -1,
    .mhz_memory_most      = -1,
    .throttled            = -1,
    .celsius              = -1,
    .watt                 = -1,
    .watt_limit           = -1,
    .pcie_generation      = -1,
    .pcie_generation_most = -1,
    .pcie_width           = -1,
    .pcie_width_most      = -1,
    .has_ecc              = -1,
    .corrected            = -1,
    .uncorrected          = -1,
    .n_link               = -1,
    .n_link_active        = -1,
};

fm_status fm_gpu_facts_read(fm_gpu_facts *out, int index, const char *pci)
{
    device d = NULL;
    *out     = nothing;
    if (!find_device(&d, index, pci))
        return fm_fail(FM_E_NOSUP, "NVML (" LIBRARY ") knows no GPU %s", pci ? pci : "here");
    out->index = index;
    if (nvml.name) (void)nvml.name(d, out->name, sizeof out->name);
    if (nvml.driver) (void)nvml.driver(out->driver, sizeof out->driver);
    read_state(out, d);
    read_bus(out, d);
    read_links(out, d);
    out->corrected   = errors(d, CORRECTED);
    out->uncorrected = errors(d, UNCORRECTED);
    return FM_OK;
}

void fm_gpu_throttle_words(int64_t bits, char *out, size_t size)
{
    static const struct {
        int         bit;
        const char *words;
    } reason[] = {{FM_GPU_HARDWARE_HEAT, "heat, by the hardware"},
                  {FM_GPU_THERMAL, "heat"},
                  {FM_GPU_POWER_BRAKE, "the power supply's brake"},
                  {FM_GPU_HARDWARE_SLOW, "a hardware slowdown"},
                  {FM_GPU_POWER_CAP, "the power cap"},
                  {FM_GPU_CLOCKS_SET, "clocks that were fixed by hand"},
                  {FM_GPU_SYNC_BOOST, "other GPUs of its sync boost group"},
                  {FM_GPU_DISPLAY_CLOCKS, "display clocks"}};
    size_t n   = 0;
    *out       = 0;
    for (size_t i = 0; bits > 0 && i < sizeof reason / sizeof reason[0]; i++)
        if (bits & reason[i].bit && n + 1 < size)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", reason[i].words);
}
