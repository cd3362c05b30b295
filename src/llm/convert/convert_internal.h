/* SPDX-License-Identifier: Apache-2.0 */
/* One file of a conversion: convert.c goes through a folder, shard.c through a file. */
#ifndef FM_LLM_CONVERT_INTERNAL_H
#define FM_LLM_CONVERT_INTERNAL_H

#include <jansson.h>

#include "base/progress.h"
#include "llm/convert/convert.h"
#include "llm/load/source.h"

typedef struct {
    const fm_convert_request *request;
    const fm_source          *source; /* all files of the model */
    json_t                   *map;    /* tensor -> file, of the output */
    fm_convert_report        *report;
    fm_progress               bar;
} fm__conversion;

/* MODEL/name -> OUT/name; a complete OUT/name is left alone. */
fm_status fm__convert_file(fm__conversion *c, const char *name);

#endif
