/* SPDX-License-Identifier: Apache-2.0 */
/* A checkup of all machines of a job: every rank reads the facts of its machine and
 * measures its rates, pairs of ranks measure their links, and the results are gathered on
 * every rank.  probe/findings.h draws the conclusions. */
#ifndef FM_PROBE_CHECKUP_H
#define FM_PROBE_CHECKUP_H

#include "device/host_threads.h"
#include "probe/facts.h"
#include "probe/file_read.h"
#include "probe/gpu_links.h"
#include "probe/gpu_rates.h"
#include "probe/links.h"
#include "probe/rates.h"

/* Plain bytes: ranks send it to each other. */
typedef struct {
    fm_rates_rank rates;
    fm_facts      facts;
    double        on_cpu; /* share of the measured time in which its threads were running */
    fm_gpu_facts  gpu;
    char          gpu_why[160]; /* why a GPU that is there could not be measured; "": it was */
    fm_file_read  file;
    char          file_why[160];
} fm_checkup_rank;

typedef struct {
    char name[64];
    int  first, n_rank; /* lowest rank of the host, and how many it has */
} fm_checkup_host;

typedef struct {
    int              n_rank, n_host;
    fm_checkup_rank *rank;    /* [n_rank] owned */
    int             *host_of; /* [n_rank] owned: index into host */
    fm_checkup_host *host;    /* [n_host] owned, in the order of their lowest ranks */
    fm_links         links;
    fm_gpu_links     gpu_links;
    fm_checkup_rank *before;  /* [n_before] owned: rates that were measured another day */
    int              n_before;
    char             mpi[64]; /* the library of messages; "": none was needed */
    double           seconds; /* it took */
} fm_checkup;

typedef struct {
    fm_threads *threads;   /* this rank's team; borrowed */
    const char *directory; /* whose files are read; NULL: none */
    double      seconds;   /* for cores and memory of one machine */
    double      patience;  /* seconds to wait for another rank's turn */
    int         no_gpu;    /* GPUs are left alone */
    fm_gpu_product *gpu_product; /* measures large products on a GPU; NULL: they are left out */
} fm_checkup_plan;

/* All ranks together.  FM_E_COMM names a rank that did not answer. */
fm_status fm_checkup_run(fm_checkup *out, fm_world *w, const fm_checkup_plan *plan);

/* Room for ranks; fm_checkup_settle then finds the hosts by rank[].rates.host. */
fm_status fm_checkup_init(fm_checkup *c, int n_rank);
void      fm_checkup_settle(fm_checkup *c);
void      fm_checkup_fini(fm_checkup *c); /* {0} is fine */

/* Hosts are compared with these as well: rates of a good day. */
fm_status fm_checkup_remember(fm_checkup *c, const fm_rates *before);

/* As the file of rates has it. */
fm_status fm_checkup_rates(fm_rates *out, const fm_checkup *c);

/* A rate of a host: the middle of its ranks'.  `get` gives a rank's. */
fm_rate fm_checkup_host_rate(const fm_checkup *c, int host,
                             fm_rate (*get)(const fm_checkup_rank *r, int which), int which);

#endif
