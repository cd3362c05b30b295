/* SPDX-License-Identifier: Apache-2.0 */
#include "listening.h"

#include <sys/resource.h>

#include "base/log.h"
#include "base/str.h"

void fm_listening_raise_file_limit(void)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0) return;
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
}

void fm_listening_ready(void *command, const char *url)
{
    fm_str line = {0};
    fm_str_printf(&line, "fathom %s: listening on %s\n", (const char *)command, url);
    fm_log_lines(line.text);
    fm_str_fini(&line);
}

void fm_listening_lines(void *command, const char *lines)
{
    (void)command;
    fm_log_lines(lines);
}
