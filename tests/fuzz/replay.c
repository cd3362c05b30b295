/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_NAME FOLDER: runs a fuzz target on every file of its corpus, where libFuzzer is not there
 * to do it.  A fault ends the process. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 0: it cannot be read. */
static int run_file(const char *folder, const char *name)
{
    char  path[4096];
    FILE *f = NULL;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path)
        f = fopen(path, "rb");
    if (!f) return 0;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    uint8_t   *data = size >= 0 ? malloc((size_t)size + 1) : NULL; /* + 1: none has no bytes */
    rewind(f);
    const int good = data && fread(data, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    if (good) {
        uint8_t *exact = size ? realloc(data, (size_t)size) : data; /* a byte too far is seen */
        if (exact) data = exact;
        LLVMFuzzerTestOneInput(data, (size_t)size);
    }
    free(data);
    return good;
}

int main(int argc, char **argv)
{
    DIR           *folder = argc == 2 ? opendir(argv[1]) : NULL;
    struct dirent *e;
    int            n = 0;
    if (!folder) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    while ((e = readdir(folder))) {
        if (e->d_name[0] == '.') continue;
        if (!run_file(argv[1], e->d_name)) {
            fprintf(stderr, "%s/%s cannot be read\n", argv[1], e->d_name);
            return 2;
        }
        n++;
    }
    closedir(folder);
    printf("%d inputs\n", n);
    return n ? 0 : 2;
}
