/* SPDX-License-Identifier: Apache-2.0 */
/* fathom bench --base-url: the latency and throughput a running server shows
 * its clients.  The order of effects is bench_serving's: draw the requests,
 * warm up, empty the cache if asked, pause a second, send, report. */
#define _POSIX_C_SOURCE 200809L
#include "bench_online.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "output_file.h"

enum { WARMUP_TOKENS = 32 };

typedef struct {
    const fm_online_options *o;
    const fm_bench_options  *b;
    const fm_options        *engine;
    const fm_wire           *wire;
    const char              *backend;
    char                    *base_url;
    double                   rate;
    fm_client               *client;
    fm_online_server         server;
    fm_dataset               rows;
    fm_str                  *body;   /* [rows.n] */
    fm_online_answer        *answer; /* [rows.n] */
} job;

fm_status fm_online_wanted(int *yes, const fm_online_options *o)
{
    static const char *const own[] = {"engine", "runtime", "fathom"};
    *yes                           = o->online || o->base_url;
    if (*yes || !o->backend) return FM_OK;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (!strcmp(own[i], o->backend)) return FM_OK;
    return fm_fail(FM_E_ARG,
                   "--backend %s asks a running server; say which with --base-url, or with "
                   "--online and --host, --port",
                   o->backend);
}

static fm_status read_rate(double *out, const char *text)
{
    char *end;
    errno          = 0;
    const double r = strtod(text, &end);
    if (end == text || *end || !(r > 0))
        return fm_fail(FM_E_ARG, "--request-rate %s: expected inf or requests per second", text);
    *out = r;
    return FM_OK;
}

static fm_status check_options(job *j)
{
    j->backend = j->o->backend ? j->o->backend : "sglang";
    if (!(j->wire = fm_wire_find(j->backend)))
        return fm_fail(
            FM_E_ARG,
            "--backend %s: expected sglang, sglang-oai, sglang-oai-chat, vllm or vllm-chat",
            j->backend);
    FM_TRY(read_rate(&j->rate, j->o->request_rate));
    FM_TRY(fm_bench_check_paths(j->b));
    return fm_output_check("output-file", j->o->output_file);
}

static fm_status set_header(fm_client *c, const char *pair)
{
    const char *eq = strchr(pair, '=');
    if (!eq || eq == pair) return fm_fail(FM_E_ARG, "--header %s: expected NAME=VALUE", pair);
    fm_str name = {0};
    fm_str_add(&name, pair, (size_t)(eq - pair));
    fm_client_header(c, name.text, eq + 1);
    fm_str_fini(&name);
    return FM_OK;
}

/* OpenAI's clients want the address with /v1; here each path has its own. */
static void drop_version(fm_str *url)
{
    size_t n = url->len;
    while (n && url->text[n - 1] == '/') n--;
    if (n > 3 && !strncmp(url->text + n - 3, "/v1", 3) && url->text[n - 4] != '/')
        url->text[url->len = n - 3] = 0;
}

static fm_status open_client(job *j)
{
    fm_str s = {0};
    if (j->o->base_url)
        fm_str_puts(&s, j->o->base_url);
    else
        fm_str_printf(&s, "http://%s:%lld", j->o->host, (long long)j->o->port);
    drop_version(&s);
    j->base_url = s.text;
    FM_TRY(fm_client_create(&j->client, j->base_url, j->o->timeout));
    if (j->o->api_key) {
        fm_str key = {0};
        fm_str_printf(&key, "Bearer %s", j->o->api_key);
        fm_client_header(j->client, "Authorization", key.text);
        fm_str_fini(&key);
    }
    return j->o->header ? set_header(j->client, j->o->header) : FM_OK;
}

/* Each request in flight is a socket. */
static void raise_file_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0) return;
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
}

static fm_status draw(job *j)
{
    fm_data_options d = fm_bench_data_options(j->b);
    d.tokenizer       = j->server.tokenizer;
    d.vocab           = j->server.vocab;
    d.context         = j->server.context;
    fm_dataset warmup = {0};
    FM_TRY(fm_dataset_draw(&j->rows, &warmup, &d));
    fm_dataset_fini(&warmup); /* online, the first request warms up */
    printf("#Input tokens: %lld\n#Output tokens: %lld\n", (long long)j->rows.sum_prompt,
           (long long)j->rows.sum_output);
    fflush(stdout);
    return FM_OK;
}

static fm_wire_options wire_options(const job *j)
{
    return (fm_wire_options){.model       = j->server.model,
                             .tokenizer   = j->server.tokenizer,
                             .extra       = j->b->extra_request_body,
                             .temperature = j->o->temperature,
                             .top_p       = j->o->top_p,
                             .ignore_eos  = !j->b->disable_ignore_eos,
                             .stream      = !j->o->disable_stream};
}

static fm_status write_bodies(job *j)
{
    const fm_wire_options w = wire_options(j);
    if (fm_wire_needs_text(j->wire) && !w.tokenizer)
        return fm_fail(FM_E_ARG, "--backend %s sends text; give --tokenizer-path", j->backend);
    j->body   = calloc((size_t)j->rows.n + 1, sizeof *j->body);
    j->answer = calloc((size_t)j->rows.n + 1, sizeof *j->answer);
    if (!j->body || !j->answer) return fm_fail(FM_E_OOM, "%d requests", j->rows.n);
    for (int i = 0; i < j->rows.n; i++) {
        const fm_data_row *row = &j->rows.row[i];
        FM_TRY(fm_wire_body(&j->body[i], j->wire, &w, row, row->n_output));
        j->answer[i].n_prompt = row->n_prompt;
    }
    return FM_OK;
}

static fm_status check_warm_up(const fm_online_answer *a, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i].error) return fm_fail(FM_E_COMM, "the warm-up request failed: %s", a[i].error);
    return FM_OK;
}

/* The first request again and again, with at most 32 tokens. */
static fm_status warm_up(job *j)
{
    const int n = (int)j->o->warmup_requests;
    if (n == 0 || j->b->skip_warmup || j->rows.n == 0) return FM_OK;
    const fm_data_row    *row    = &j->rows.row[0];
    const fm_wire_options w      = wire_options(j);
    fm_str               *body   = calloc((size_t)n, sizeof *body);
    fm_online_answer     *answer = calloc((size_t)n, sizeof *answer);
    FM_BUG_UNLESS(body && answer);
    fm_status rc = FM_OK;
    for (int i = 0; rc == FM_OK && i < n; i++)
        rc = fm_wire_body(&body[i], j->wire, &w, row,
                          row->n_output < WARMUP_TOKENS ? row->n_output : WARMUP_TOKENS);
    const fm_arrivals how = {
        .rate = INFINITY, .limit = (int)j->o->max_concurrency, .stream = w.stream, .quiet = 1};
    double seconds;
    if (rc == FM_OK) rc = fm_online_run(j->client, j->wire, &how, body, answer, n, &seconds);
    if (rc == FM_OK) rc = check_warm_up(answer, n);
    for (int i = 0; i < n; i++) {
        fm_str_fini(&body[i]);
        fm_online_answer_fini(&answer[i]);
    }
    free(body);
    free(answer);
    return rc;
}

static fm_status retokenize(int64_t *out, const job *j)
{
    if (!j->server.tokenizer) return FM_OK;
    fm_tokenizer_scratch *scratch = NULL;
    FM_TRY(fm_tokenizer_scratch_create(&scratch, j->server.tokenizer));
    fm_ids ids = {0};
    for (int i = 0; i < j->rows.n; i++)
        if (!j->answer[i].error && j->answer[i].text.len) /* no UTF-8: not counted */
            (void)fm_encode(j->server.tokenizer, scratch, j->answer[i].text.text,
                            j->answer[i].text.len, 0, &ids);
    *out = (int64_t)ids.n;
    fm_ids_fini(&ids);
    fm_tokenizer_scratch_destroy(scratch);
    return FM_OK;
}

static void complain_about_failures(const job *j, int n_failed)
{
    if (!n_failed) return;
    for (int i = 0; i < j->rows.n; i++) {
        if (!j->answer[i].error) continue;
        fprintf(stderr, "fathom bench: %d of %d requests failed, the first (%d): %s\n", n_failed,
                j->rows.n, i, j->answer[i].error);
        return;
    }
}

static fm_status write_line(const char *flag, const char *path, const fm_online_result *r)
{
    return path && *path ? fm_bench_append(flag, path, fm_online_json(r)) : FM_OK;
}

static fm_status write_files(const job *j, const fm_online_result *r)
{
    const char     *path    = j->b->output_details;
    const fm_status line    = write_line("output-file", j->o->output_file, r);
    const fm_status same    = write_line("result-filename", j->b->result_filename, r);
    const fm_status details = path && *path ? fm_online_write_details(path, r) : FM_OK;
    return line != FM_OK ? line : same != FM_OK ? same : details;
}

static fm_status report(const job *j, const fm_online_result *r)
{
    fm_online_print(r);
    fflush(stdout);
    complain_about_failures(j, r->m.failed);
    FM_TRY(write_files(j, r));
    return fm_online_verdict(&r->m);
}

static fm_status measure(job *j)
{
    const fm_arrivals how     = {.rate   = j->rate,
                                 .limit  = (int)j->o->max_concurrency,
                                 .seed   = (uint64_t)j->b->seed,
                                 .stream = !j->o->disable_stream,
                                 .quiet  = j->engine->quiet,
                                 .label  = "requests"};
    double            seconds = 0;
    FM_TRY(fm_online_run(j->client, j->wire, &how, j->body, j->answer, j->rows.n, &seconds));
    fm_online_result r = {.online   = j->o,
                          .bench    = j->b,
                          .server   = &j->server,
                          .answer   = j->answer,
                          .rows     = &j->rows,
                          .base_url = j->base_url,
                          .backend  = j->backend,
                          .dataset  = fm_bench_dataset_name(j->b),
                          .rate     = j->rate,
                          .m        = fm_online_measure(j->answer, j->rows.n, seconds)};
    r.changes          = (fm_bench_changes){.n_asked       = fm_bench_asked(j->b),
                                            .n_cut_context = j->rows.n_cut,
                                            .context       = j->server.context};
    fm_online_ask_drafts(&r.m, j->client, &j->server);
    FM_TRY(retokenize(&r.m.n_retokenized, j));
    return report(j, &r);
}

static void finish(job *j)
{
    for (int i = 0; i < j->rows.n; i++) {
        if (j->body) fm_str_fini(&j->body[i]);
        if (j->answer) fm_online_answer_fini(&j->answer[i]);
    }
    free(j->body);
    free(j->answer);
    fm_dataset_fini(&j->rows);
    fm_online_server_close(&j->server);
    fm_client_destroy(j->client);
    free(j->base_url);
}

fm_status fm_bench_online(const fm_online_options *o, const fm_bench_options *b,
                          const fm_options *engine, const fm_args *args)
{
    fm_status rc = FM_OK;
    job       j  = {.o = o, .b = b, .engine = engine};
    if (!engine->quiet && args->notes.text) fputs(args->notes.text, stderr);
    raise_file_limit();
    FM_GO(check_options(&j));
    FM_GO(open_client(&j));
    FM_GO(fm_online_server_open(&j.server, j.client, j.base_url, o, engine));
    FM_GO(draw(&j));
    FM_GO(write_bodies(&j));
    FM_GO(warm_up(&j));
    if (o->flush_cache) FM_GO(fm_online_flush(j.client));
    if (o->warmup_requests) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    FM_GO(measure(&j));
out:
    finish(&j);
    return rc;
}
