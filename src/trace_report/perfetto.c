/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/perfetto.h"

#include "trace_report/quoted.h"

static const char *const lane_name[FM_N_TRACE_CLASS] = {
#define NAME(id, text) text,
    FM_TRACE_CLASS_MAP(NAME)
#undef NAME
};

static void put_meta(FILE *to, const char *what, int pid, int tid, const char *name)
{
    fprintf(to, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", what,
            pid, tid);
    fm__put_quoted(to, name);
    fputs("}},\n", to);
}

/* Phases, gaps and idle time follow each other: one thread. */
static int thread_of(int cls)
{
    return cls == FM_TRACE_GAP || cls == FM_TRACE_IDLE ? FM_TRACE_PHASE : cls;
}

static void put_names(FILE *to, const fm_trace_job *j)
{
    for (int i = 0; i < j->n; i++) {
        const fm_trace_head *h = &j->file[i].head;
        char                 name[100];
        snprintf(name, sizeof name, "rank %d (%s)", h->rank, h->host);
        put_meta(to, "process_name", h->rank, 0, name);
        for (int c = 0; c < FM_N_TRACE_CLASS; c++)
            if (thread_of(c) == c) put_meta(to, "thread_name", h->rank, c, lane_name[c]);
    }
}

static void put_key(FILE *to, const fm_trace_key *k)
{
    char name[80];
    snprintf(name, sizeof name, k->part[0] ? "%s (%s)" : "%s", k->name, k->part);
    fm__put_quoted(to, name);
}

static void put_task(FILE *to, const fm_trace_job *j, int i, const fm_trace_span *s)
{
    for (int end = 0; end < 2; end++) {
        fprintf(to,
                "{\"ph\":\"%c\",\"cat\":\"task\",\"id\":\"%llx\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
                "\"name\":",
                end ? 'e' : 'b', (unsigned long long)s->tag, j->file[i].head.rank, FM_TRACE_TASK,
                1e-3 * (double)fm_trace_time(j, i, s->begin_ns + (end ? s->dur_ns : 0)));
        put_key(to, &j->file[i].key[s->key]);
        fprintf(to, ",\"args\":{\"rows\":%u}},\n", s->rows);
    }
}

static void put_span(FILE *to, const fm_trace_job *j, int i, const fm_trace_span *s)
{
    const fm_trace_key *k = &j->file[i].key[s->key];
    if (k->cls == FM_TRACE_TASK) {
        put_task(to, j, i, s);
        return;
    }
    fprintf(to, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":",
            j->file[i].head.rank, thread_of(k->cls),
            1e-3 * (double)fm_trace_time(j, i, s->begin_ns), 1e-3 * (double)s->dur_ns);
    put_key(to, k);
    fputs(",\"args\":{", to);
    if (k->cls == FM_TRACE_COLLECTIVE)
        fprintf(to, "\"busy_us\":%u,\"call\":%u", s->rows, (uint32_t)s->tag);
    else
        fprintf(to, "\"rows\":%u,\"step\":%llu", s->rows, (unsigned long long)s->tag);
    if (k->cls == FM_TRACE_WORK && s->layer != FM_TRACE_NO_LAYER)
        fprintf(to, ",\"layer\":%u", s->layer);
    fputs("}},\n", to);
}

void fm_trace_perfetto(FILE *to, const fm_trace_job *j)
{
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", to);
    put_names(to, j);
    for (int i = 0; i < j->n; i++)
        for (size_t s = 0; s < j->file[i].n_span; s++) put_span(to, j, i, &j->file[i].span[s]);
    fputs("{\"ph\":\"M\",\"name\":\"end\",\"pid\":0,\"args\":{}}]}\n",
          to); /* no comma behind the last */
}
