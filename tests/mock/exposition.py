# SPDX-License-Identifier: Apache-2.0
"""The mock server's /metrics: counted, not invented."""
import threading
import time

LATENCY = [0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400]
BETWEEN = [0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.06, 0.08, 0.1, 0.2, 0.5, 1, 2]


class Histogram:
    def __init__(self, name, bounds):
        self.name, self.bounds, self.count, self.sum, self.n = name, bounds, [0] * len(bounds), 0.0, 0

    def add(self, x, times=1):
        self.sum += x * times
        self.n += times
        for i, le in enumerate(self.bounds):
            if x <= le:
                self.count[i] += times

    def lines(self):
        yield f"# TYPE fathom:{self.name} histogram"
        for le, c in [*zip(self.bounds, self.count), ("+Inf", self.n)]:
            yield f'fathom:{self.name}_bucket{{model_name="mock-tiny",le="{le}"}} {c}'
        yield f'fathom:{self.name}_sum{{model_name="mock-tiny"}} {self.sum}'
        yield f'fathom:{self.name}_count{{model_name="mock-tiny"}} {self.n}'


class Metrics:
    def __init__(self):
        self.lock = threading.Lock()
        self.running = self.requests = self.prompt = self.generated = self.cached = 0
        self.mark = (time.monotonic(), 0)
        self.ttft = Histogram("time_to_first_token_seconds", LATENCY)
        self.itl = Histogram("inter_token_latency_seconds", BETWEEN)
        self.e2e = Histogram("e2e_request_latency_seconds", LATENCY)

    def begin(self, n_prompt):
        with self.lock:
            self.running += 1
            self.requests += 1
            self.prompt += n_prompt
            self.cached += n_prompt // 2

    def first(self, seconds):
        with self.lock:
            self.ttft.add(seconds)

    def tokens(self, n, between):
        with self.lock:
            self.generated += n
            self.itl.add(between, n)

    def end(self, seconds):
        with self.lock:
            self.running -= 1
            self.e2e.add(seconds)

    def throughput(self):
        now = time.monotonic()
        then, before = self.mark
        if now - then > 1:
            self.mark = (now, self.generated)
        return (self.generated - before) / max(now - then, 1e-3)

    def text(self):
        with self.lock:
            plain = {"num_running_reqs": self.running, "num_queue_reqs": max(0, self.running - 4),
                     "token_usage": min(1.0, self.running * 0.07), "num_used_tokens": self.running * 4600,
                     "max_total_num_tokens": 65536, "gen_throughput": self.throughput(),
                     "cache_hit_rate": self.cached / max(1, self.prompt), "prompt_tokens_total": self.prompt,
                     "generation_tokens_total": self.generated, "cached_tokens_total": self.cached,
                     "num_requests_total": self.requests,
                     "forward_execution_seconds_total": 0.8 * time.monotonic(),
                     "step_host_seconds_total": 0.1 * time.monotonic(), "step_gap_seconds_total": 0.02 * time.monotonic(),
                     "kv_evictable_tokens": 12000, "num_connections": 7, "http_2xx_total": self.requests,
                     "http_4xx_total": 5, "http_5xx_total": 2, "nonfinite_logits_total": 1,
                     "num_aborted_requests_total": 4, "num_refused_requests_total": 6, "spec_accept_length": 1.84,
                     "hicache_loads_total": 3, "cached_tokens_host_total": self.cached / 4,
                     "cached_tokens_storage_total": self.cached / 4, "hicache_host_read_bytes_total": 1.5e9,
                     "hicache_storage_read_bytes_total": 5e8, "hicache_storage_written_bytes_total": 2.34e6,
                     "hicache_storage_queue": 9, "hicache_storage_on": 0}
            lines = [f'fathom:{k}{{model_name="mock-tiny",engine_type="unified"}} {v}' for k, v in plain.items()]
            for h in (self.ttft, self.itl, self.e2e):
                lines += h.lines()
        return "\n".join(lines) + "\n"
