/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#define K(KIND, field, ...) FM_KNOB(fm_plan_options, KIND, field, __VA_ARGS__)

/* clang-format off */
const fm_knob fm_plan_knobs[] = {
    K(WORD, cluster, "cluster", NULL, 0, 0, "NxMxKIND", "nodes, devices of each and their kind, such as 2x8xH200, or a JSON file that describes them, or the rates file of fathom doctor; without it, this machine"),
    K(WORD, machine, "machine", NULL, 0, 0, "NAME", "take the table of costs tuned/NAME.json, or this .json file, instead of the one of the device's name"),
    K(WORD, dataset, "dataset", NULL, 0, 0, "WHAT", "a file, as --dataset-path, or a name, as --dataset-name"),
    K(REAL, slo_ttft, "slo-ttft", "0", 0, 1e9, "MS", "bound of the 99th percentile of the time to the first token; 0: none"),
    K(REAL, slo_tpot, "slo-tpot", "0", 0, 1e9, "MS", "bound of the 99th percentile of the time per further token; 0: none"),
    K(INT, users, "users", "0", 0, 1 << 16, "N", "how many devices serve N users at once within --slo-ttft and --slo-tpot; each asks again when answered"),
    K(REAL, accept_length, "accept-length", "1.8", 1, 17, "X", "with speculation: tokens that a step gives a sequence"),
    K(FLAG, all_devices, "all-devices", NULL, 0, 0, NULL, "only layouts that use every device of the cluster"),
    K(INT, rows, "rows", "20", 1, 512, "N", "layouts in the table; files have all"),
    K(FLAG, json, "json", NULL, 0, 0, NULL, "print one JSON object and nothing else"),
    K(WORD, html, "html", NULL, 0, 0, "FILE", "write a page with all layouts and their Pareto front"),
    K(WORD, write_script, "write-script", NULL, 0, 0, "FILE", "write a job script for PBS and Slurm that runs the first layout"),
    K(FLAG, calibrate, "calibrate", NULL, 0, 0, NULL, "measure this machine with the model, and write its table of costs"),
    K(REAL, calibrate_seconds, "calibrate-seconds", "120", 1, 3600, "S", "time for --calibrate, loading not counted"),
    K(WORD, write_table, "write-table", NULL, 0, 0, "FILE", "where --calibrate writes; default ~/.cache/fathom/tuned/MACHINE.json"),
};
/* clang-format on */
const int fm_n_plan_knob = (int)(sizeof fm_plan_knobs / sizeof fm_plan_knobs[0]);
