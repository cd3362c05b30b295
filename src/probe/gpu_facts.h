/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver says about a GPU, by NVML (libnvidia-ml.so.1), which is opened
 * when it is first needed: a build needs nothing of it.  Plain bytes, so that
 * ranks can send it to each other. */
#ifndef FM_PROBE_GPU_FACTS_H
#define FM_PROBE_GPU_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Numbers are -1 and texts "" where the driver does not say. */
typedef struct {
    char    name[96], driver[32];
    char    pci[32];                 /* address: "0000:1B:00.0" */
    char    runtime[16];             /* version of the CUDA runtime the program was built with */
    int     index;                   /* of the device as NVML counts; -1: there is none */
    int     mhz, mhz_most;           /* clock of the multiprocessors, now and at most */
    int     mhz_memory, mhz_memory_most;
    int64_t throttled;               /* bits of FM_GPU_... below; -1: not known */
    int     celsius, watt, watt_limit;
    int     pcie_generation, pcie_generation_most, pcie_width, pcie_width_most;
    int     has_ecc;                   /* switched on */
    int64_t corrected, uncorrected;    /* memory errors since the driver was loaded */
    int     n_link, n_link_active;     /* NVLink */
} fm_gpu_facts;

/* Why clocks are lower than they could be. */
enum {
    FM_GPU_IDLE           = 0x01,
    FM_GPU_CLOCKS_SET     = 0x02, /* a user has fixed them */
    FM_GPU_POWER_CAP      = 0x04,
    FM_GPU_HARDWARE_SLOW  = 0x08,
    FM_GPU_SYNC_BOOST     = 0x10,
    FM_GPU_THERMAL        = 0x20,
    FM_GPU_HARDWARE_HEAT  = 0x40,
    FM_GPU_POWER_BRAKE    = 0x80,
    FM_GPU_DISPLAY_CLOCKS = 0x100
};

/* Of device `index`, or of the one at a PCI address ("0000:1B:00.0") where `pci` is not NULL.
 * FM_E_NOSUP: there is no NVML, or no such device; *out says that it has none. */
fm_status fm_gpu_facts_read(fm_gpu_facts *out, int index, const char *pci);

/* "heat, power cap"; "" where nothing slows it down.  Idle is no reason. */
void fm_gpu_throttle_words(int64_t bits, char *out, size_t size);

#endif
