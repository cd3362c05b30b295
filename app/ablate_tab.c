/* SPDX-License-Identifier: Apache-2.0 */
#include "ablate.h"

#define K(KIND, field, ...) FM_KNOB(fm_ablate_options, KIND, field, __VA_ARGS__)

/* clang-format off */
const fm_knob fm_ablate_knobs[] = {
    K(WORD, level, "level", "auto", 0, 0, "HOW", "singles (each feature off), pairs, full (every combination), or auto: full where it is at most 64 cells"),
    K(WORD, features, "features", NULL, 0, 0, "LIST", "which features, such as radix,speculation; without it, all this machine has"),
    K(WORD, layouts, "layouts", NULL, 0, 0, "LIST", "which layouts of ranks, such as 1,tp2,pp2; without it, all"),
    K(INT, repeat, "repeat", "1", 1, 99, "N", "runs of each cell; the median counts"),
    K(REAL, wall_time, "wall-time", "0", 0, 1e9, "S", "seconds for everything; cells that do not fit are left out and named; 0: no limit"),
    K(REAL, cell_time_limit, "cell-time-limit", "600", 0, 1e9, "S", "seconds after which a cell is ended and counts as failed"),
    K(WORD, continues, "continue", NULL, 0, 0, "FILE", "take the cells that an earlier run of this command measured from its --json FILE"),
    K(WORD, markdown, "markdown", NULL, 0, 0, "FILE", "write the table as Markdown"),
    K(WORD, html, "html", NULL, 0, 0, "FILE", "write it as one HTML page"),
    K(WORD, json, "json", NULL, 0, 0, "FILE", "write it as JSON"),
};
const int fm_n_ablate_knob = (int)(sizeof fm_ablate_knobs / sizeof fm_ablate_knobs[0]);

const fm_ablate_feature fm_ablate_features[] = {
    {"graph", "decode steps recorded as CUDA graphs", "", "--disable-cuda-graph", 1, 0, 0, NULL},
    {"overlap", "a step is planned while the one before runs", "", "--disable-overlap-schedule", 1, 0, 0, NULL},
    {"radix", "prefixes shared between requests", "", "--disable-radix-cache", 0, 0, 0, NULL},
    {"chunked", "prompts in chunks among decodes (512 tokens)", "--chunked-prefill-size=512", "--chunked-prefill-size=-1", 0, 0, 0, NULL},
    {"speculation", "drafts from the request's own text", "--speculative-algorithm=NGRAM", "", 0, 0, 0, NULL},
    {"nextn", "drafts from the model's MTP layer", "--speculative-algorithm=NEXTN", "", 0, 0, 1, NULL},
    {"tiers", "prefixes kept in files below the pool", "--hicache-storage-backend=file --hicache-storage-dir={dir} --hicache-size=8", "", 0, 0, 0, "radix"},
    {"fp8-kv", "KV cache in E4M3", "--kv-cache-dtype=fp8_e4m3", "", 1, 1, 0, NULL},
};
const int fm_n_ablate_feature = (int)(sizeof fm_ablate_features / sizeof fm_ablate_features[0]);

const fm_ablate_layout fm_ablate_layouts[] = {
    {"1", "", 1},
    {"tp2", "--tp-size=2", 2},
    {"pp2", "--pp-size=2", 2},
    {"dp2", "--dp-size=2", 2},
    {"tp2-ep2", "--tp-size=2 --ep-size=2", 2},
    {"tp2-dpa2", "--tp-size=2 --dp-size=2 --enable-dp-attention", 2},
    {"tp2-ep2-dpa2", "--tp-size=2 --ep-size=2 --dp-size=2 --enable-dp-attention", 2},
};
/* clang-format on */
const int fm_n_ablate_layout = (int)(sizeof fm_ablate_layouts / sizeof fm_ablate_layouts[0]);
