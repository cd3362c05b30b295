/* SPDX-License-Identifier: Apache-2.0 */
/* What `fathom tune bench` and `fathom tune serve` search.  Parents stand before
 * the parameters that depend on them. */
#include "tune.h"

enum { BOTH = FM_TUNE_CPU | FM_TUNE_GPU };

/* clang-format off */
const fm_tune_knob fm_tune_spaces[] = {
    {"threads", "threads=1..%d", "--threads={threads}", "threads", "cpus", FM_TUNE_CPU},
    {"max-running-requests", "max-running-requests={8,16,32,64,128,256,512,1024}",
     "--max-running-requests={max-running-requests}", "max-running-requests", "256", BOTH},
    {"chunked-prefill-size", "chunked-prefill-size={128,256,512,1024,2048,4096,8192}",
     "--chunked-prefill-size={chunked-prefill-size}", "chunked-prefill-size", "2048", BOTH},
    {"page-size", "page-size={4,8,16,32,64}", "--page-size={page-size}", "page-size", "16", BOTH},
    {"schedule-policy", "schedule-policy={fcfs,lpm}", "--schedule-policy={schedule-policy}",
     "schedule-policy", "fcfs", BOTH},
    {"speculation", "speculation={off,on}", "{speculation?--speculative-algorithm=NGRAM}",
     "speculative-algorithm", "off", BOTH},
    {"drafts", "drafts=1..8 if speculation=on", "--speculative-num-steps={drafts}",
     "speculative-num-steps", "3", BOTH},

    {"schedule-conservativeness", "schedule-conservativeness={0.1,0.3,0.6,1,1.5}",
     "--schedule-conservativeness={schedule-conservativeness}", "schedule-conservativeness", "1", BOTH | FM_TUNE_ASKED},
    {"radix-cache", "radix-cache={on,off}", "{radix-cache!--disable-radix-cache}",
     "disable-radix-cache", "on", BOTH | FM_TUNE_ASKED},
    {"cuda-graph", "cuda-graph={on,off}", "{cuda-graph!--disable-cuda-graph}",
     "disable-cuda-graph", "on", FM_TUNE_GPU | FM_TUNE_ASKED},
    {"overlap", "overlap={on,off}", "{overlap!--disable-overlap-schedule}",
     "disable-overlap-schedule", "on", FM_TUNE_GPU | FM_TUNE_ASKED},
    {"kv-cache-dtype", "kv-cache-dtype={auto,fp8_e4m3}", "--kv-cache-dtype={kv-cache-dtype}",
     "kv-cache-dtype", "auto", FM_TUNE_GPU | FM_TUNE_ASKED},
    {"tp", "tp={1,2,4,8}", "--tp-size={tp}", "tp-size", "1", BOTH | FM_TUNE_ASKED},
    {"pp", "pp={1,2,4,8}", "--pp-size={pp}", "pp-size", "1", BOTH | FM_TUNE_ASKED},
    {"dp", "dp={1,2,4,8}", "--dp-size={dp}", "dp-size", "1", BOTH | FM_TUNE_ASKED},
};
/* clang-format on */
const int fm_n_tune_space = (int)(sizeof fm_tune_spaces / sizeof fm_tune_spaces[0]);
