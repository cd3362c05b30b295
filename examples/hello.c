/* SPDX-License-Identifier: Apache-2.0 */
/* Continue a text, or token ids when the model has no tokenizer:
 *     cc hello.c $(pkg-config --cflags --libs fathom) -o hello
 *     ./hello MODEL "Once upon a time"       ./hello r1-mini 1 2 3 */
#include <fathom/fathom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    fm_options *options = NULL;
    fm_engine  *engine  = NULL;
    fm_prompt   prompt  = {.sampling = fm_sampling_default()};
    int32_t     ids[64];
    uint64_t    id;

    if (argc < 3) return fputs("usage: hello MODEL TEXT | ID...\n", stderr), 2;
    prompt.sampling.max_new_tokens = 16;
    prompt.sampling.temperature    = 0;
    if (argv[2][strspn(argv[2], "0123456789")]) prompt.text = argv[2];
    prompt.text_len = strlen(argv[2]);
    for (int i = 2; !prompt.text && i < argc && i < 66; i++) ids[prompt.n_token++] = atoi(argv[i]);
    prompt.token = ids;

    fm_status rc = fm_options_create(&options);
    if (rc == FM_OK) rc = fm_options_set(options, "model-path", argv[1]);
    if (rc == FM_OK) rc = fm_engine_open(&engine, options);
    if (rc == FM_OK) rc = fm_engine_submit(engine, &prompt, &id);
    while (rc == FM_OK && fm_engine_busy(engine)) {
        rc = fm_engine_step(engine);
        for (fm_event ev; fm_engine_poll(engine, &ev);)
            prompt.text ? printf("%.*s", (int)ev.text_len, ev.text) : printf("%d ", (int)ev.token);
    }
    puts(rc == FM_OK ? "" : fm_why());
    fm_engine_close(engine);
    fm_options_destroy(options);
    return rc != FM_OK;
}
