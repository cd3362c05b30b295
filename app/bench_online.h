/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom bench --base-url`: sends requests to a running server at given times,
 * and reads the clock at every event that comes back.
 *
 *     rows ──wire──> bodies ──arrivals──> answers ──metrics──> table, JSON line
 */
#ifndef FM_APP_BENCH_ONLINE_H
#define FM_APP_BENCH_ONLINE_H

#include <stdint.h>

#include "args.h"
#include "base/knobs.h"
#include "base/mt19937.h"
#include "base/str.h"
#include "bench.h"
#include "net/client.h"

/* The flags of SGLang's bench_serving that the offline job does not have. */
typedef struct {
    char   *base_url, *host, *backend, *served_model_name, *api_key, *header;
    char   *request_rate, *output_file, *tag;
    int64_t port, max_concurrency, warmup_requests;
    double  temperature, top_p, timeout;
    int     online, flush_cache, disable_stream, cache_report;
} fm_online_options;

extern const fm_knob fm_online_knobs[];
extern const int     fm_n_online_knob;

/* Prompt tokens that a server found in its cache; all 0 where it does not say. */
typedef struct {
    int     has_parts; /* it said where they were */
    int64_t all, device, host, storage;
} fm_online_cached;

/* One request, as its answer tells. */
typedef struct {
    double   sent;    /* fm_now() */
    double   ttft;    /* seconds until the first text; 0: none came */
    double   latency; /* seconds until the last event */
    double   recent;  /* fm_now() of the last event with new tokens */
    double  *itl;     /* [n_itl] seconds per token after the first event, owned */
    int      n_itl, cap_itl;
    int      n_prompt; /* of the dataset */
    int      n_output; /* tokens: the server's count, else events with text */
    int      n_seen;   /* tokens the timing has entered */
    fm_online_cached cached;
    int      has_text;
    int32_t *id; /* [n_id] owned; only where the server sends ids */
    int      n_id;
    fm_str   text;
    fm_str   unread; /* the latest event, when all but its count was left for later */
    char     finish[16];
    char    *error; /* owned; NULL: it succeeded */
} fm_online_answer;

void fm_online_answer_fini(fm_online_answer *a);

/* An event with `n_new` more tokens arrived (-1: not said, one if there is text). */
void fm_online_arrived(fm_online_answer *a, double now, int has_text, int n_new);

/* ---- wire formats ---- */

typedef struct fm_wire fm_wire;

typedef struct {
    const char         *model;
    const fm_tokenizer *tokenizer; /* chat sends text; NULL otherwise possible */
    const char         *extra;     /* --extra-request-body or NULL */
    double              temperature, top_p;
    int                 ignore_eos, stream;
} fm_wire_options;

const fm_wire *fm_wire_find(const char *backend); /* NULL: unknown */
const char    *fm_wire_path(const fm_wire *w);
int            fm_wire_needs_text(const fm_wire *w);

/* The JSON body of a request for n_output tokens. */
fm_status fm_wire_body(fm_str *out, const fm_wire *w, const fm_wire_options *o,
                       const fm_data_row *row, int n_output);
/* One event, or a whole reply: what it adds to the answer.  Failures are the
 * server's and go to a->error. */
void fm_wire_read(const fm_wire *w, fm_online_answer *a, const char *json, size_t len, double now);
void fm_wire_end(const fm_wire *w, fm_online_answer *a); /* no more events: text and ids are whole */

/* Tokens so far, if that is all an event of /generate adds to those before and
 * what comes next will repeat the rest; -1: it has to be read. */
int fm_skim_native(const char *json, size_t len, int *has_text);

/* ---- arrivals ---- */

typedef struct {
    double      rate;  /* requests per second; INFINITY: all at once */
    int         limit; /* in flight; 0: no limit */
    uint64_t    seed;
    int         stream, quiet;
    const char *label; /* of the progress bar */
} fm_arrivals;

double fm_next_gap(fm_mt *g, double rate); /* np.random.exponential(1 / rate) */

/* Sends body[0..n) and fills answer[0..n); *seconds from first to last. */
fm_status fm_online_run(fm_client *client, const fm_wire *w, const fm_arrivals *how,
                        const fm_str *body, fm_online_answer *answer, int n, double *seconds);

/* ---- the server ---- */

typedef struct {
    char         *model; /* owned */
    fm_tokenizer *tokenizer;
    int           vocab, context; /* context 0: not said */
    json_t       *info;           /* /server_info or NULL, owned */
} fm_online_server;

/* Asks the server for what the command line does not say; `url` is for messages. */
fm_status fm_online_server_open(fm_online_server *s, fm_client *c, const char *url,
                                const fm_online_options *o, const fm_options *engine);
void      fm_online_server_close(fm_online_server *s);
fm_status fm_online_flush(fm_client *c);

/* ---- metrics ---- */

typedef struct {
    double mean, median, std, p90, p95, p99, max; /* NAN-free: 0 without samples */
} fm_spread;

typedef struct {
    int       completed, failed;
    int64_t   n_input, n_output, n_retokenized; /* retokenized -1: no tokenizer */
    fm_online_cached cached;
    double    duration;
    double    request_throughput, input_throughput, output_throughput, total_throughput;
    double    concurrency;
    double    accept_length, accept_rate; /* of the server since its start; NAN: not said */
    double    max_output_per_s;
    int       max_concurrent;
    fm_spread e2e, ttft, tpot, itl; /* milliseconds */
} fm_online_metrics;

double            fm_percentile(const double *sorted, size_t n, double q); /* q in 0..100, n > 0 */
fm_spread         fm_spread_of(double *sample, size_t n);                  /* sorts it */
fm_online_metrics fm_online_measure(const fm_online_answer *a, int n, double duration);
void              fm_online_ask_drafts(fm_online_metrics *m, fm_client *c, fm_online_server *s);
fm_status fm_online_verdict(const fm_online_metrics *m); /* FM_E_COMM: more failed than succeeded */

/* ---- report ---- */

typedef struct {
    const fm_online_options *online;
    const fm_bench_options  *bench;
    const fm_online_server  *server;
    const fm_online_answer  *answer;
    const fm_dataset        *rows;
    const char              *base_url, *backend, *dataset;
    double                   rate;
    fm_online_metrics        m;
    fm_bench_changes         changes;
} fm_online_result;

void      fm_online_print(const fm_online_result *r);
json_t   *fm_online_json(const fm_online_result *r);
fm_status fm_online_write_details(const char *path, const fm_online_result *r);

/* ---- the command ---- */

/* Is a server to be measured?  FM_E_ARG: --backend names neither. */
fm_status fm_online_wanted(int *yes, const fm_online_options *o);
fm_status fm_bench_online(const fm_online_options *o, const fm_bench_options *b,
                          const fm_options *engine, const fm_args *args);

#endif
