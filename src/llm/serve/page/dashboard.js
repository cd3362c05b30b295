/* SPDX-License-Identifier: Apache-2.0 */
/* Polls /metrics and /server_info and shows what they say, now and over time. */
"use strict";

const POLL_MS = 2000;
const RATE_SECONDS = 6, LATENCY_SECONDS = 30; /* what one point of a plot averages over */

const LATENCIES = [
  ["time_to_first_token_seconds", "Time to first token", "ttft"],
  ["inter_token_latency_seconds", "Between tokens", "itl"],
  ["e2e_request_latency_seconds", "Whole request", "e2e"],
];

const readings = []; /* {t, plain, histograms}: the raw ones, for differences */
let plots = [], down = false, keyNeeded = false;

function reading(ago) {
  const t = readings[readings.length - 1].t - ago;
  return readings.find((r) => r.t >= t);
}

/* Growth of a counter per second over the last RATE_SECONDS. */
function rate(name) {
  const now = readings[readings.length - 1], then = reading(RATE_SECONDS);
  if (!(name in now.plain) || now.t === then.t) return NaN;
  return Math.max(0, now.plain[name] - (then.plain[name] || 0)) / (now.t - then.t);
}

function point() {
  const now = readings[readings.length - 1], p = now.plain;
  const value = (name) => (name in p ? p[name] : NaN), generated = rate("generation_tokens_total");
  const out = {
    t: now.t,
    generated: Number.isFinite(generated) ? generated : value("gen_throughput"),
    prompt: rate("prompt_tokens_total"),
    running: value("num_running_reqs"), queued: value("num_queue_reqs"),
    usage: value("token_usage"), hits: value("cache_hit_rate"),
    evictable: value("kv_evictable_tokens") / value("max_total_num_tokens"),
    errors: 60 * (rate("http_5xx_total") + (rate("nonfinite_logits_total") || 0)),
    aborts: 60 * rate("num_aborted_requests_total"), bad: 60 * rate("http_4xx_total"),
    connections: value("num_connections"),
    forward: rate("forward_execution_seconds_total"), host: rate("step_host_seconds_total"),
    gaps: rate("step_gap_seconds_total"),
    accepted: value("spec_accept_length"),
  };
  for (const [name, , key] of LATENCIES) {
    const h = since(now.histograms[name], reading(LATENCY_SECONDS).histograms[name]);
    for (const q of [50, 90, 99]) out[key + q] = readings.length > 1 ? quantile(q / 100, h) : NaN;
  }
  return out;
}

function showLatencies() {
  const { histograms } = readings[readings.length - 1];
  const rows = LATENCIES.map(([name, title]) => {
    const h = histograms[name];
    const n = h ? h.n : 0, quantiles = [0.5, 0.9, 0.99].map((q) => quantile(q, h));
    const cells = [count(n), ...[n ? h.sum / n : NaN, ...quantiles].map(seconds)];
    return element("tr", {}, element("td", {}, title), ...cells.map((c) => element("td", {}, c)));
  });
  document.querySelector("#latency tbody").replaceChildren(...rows);
}

function drawDashboard() {
  if (!readings.length || byId("view-dash").hidden) return;
  const to = trail[trail.length - 1].t, from = to - Number(byId("window").value);
  showTiles();
  showLatencies();
  const speculates = trail.some((p) => Number.isFinite(p.accepted));
  plots[plots.length - 1].figure.hidden = !speculates;
  for (const plot of plots) if (!plot.figure.hidden) plot.draw(trail, from, to);
}

const FACTS = [
  ["version", "Version"], ["model_path", "Model"], ["served_model_name", "Served as"],
  ["dtype", "Arithmetic"], ["device", "Device"], ["num_threads", "Threads"],
  ["context_len", "Context"], ["context_length", "Context"], ["max_total_num_tokens", "KV pool"],
  ["page_size", "KV page"], ["effective_max_running_requests_per_dp", "Most running"],
  ["max_running_requests", "Most running"], ["max_queued_requests", "Most waiting"],
  ["chunked_prefill_size", "Prefill chunk"], ["schedule_policy", "Order"],
  ["tp_size", "Tensor-parallel ranks"],
];
const IN_TOKENS = new Set(["Context", "KV pool", "KV page", "Prefill chunk"]);

/* A fact may stand at the top, among the arguments or in the engine's state; the first name that
 * has a value gives the title its text. */
function serverFacts(info) {
  const state = (info.internal_states || [])[0], shown = new Map();
  const places = [info, info.server_args || {}, state || {}];
  for (const [key, title] of FACTS) {
    const value = places.map((p) => p[key]).find(Boolean);
    if (!value || shown.has(title)) continue;
    const text = typeof value === "number" ? value.toLocaleString("en-US") : String(value);
    shown.set(title, IN_TOKENS.has(title) ? `${text} tokens` : text);
  }
  return shown;
}

async function showServer() {
  try {
    const info = await getJson("server_info"), facts = serverFacts(info);
    takeModelDefaults(info);
    byId("facts").replaceChildren(...[...facts].flatMap(([title, text]) =>
      [element("dt", {}, title), element("dd", {}, text)]));
  } catch { /* a server without it shows nothing here */ }
}

function showLink(up, why) {
  byId("link").dataset.state = up ? "up" : "down";
  byId("link-text").textContent = !up ? "not connected" : keyNeeded ? "API key needed" : "connected";
  byId("dash-error").hidden = up;
  byId("dash-error").textContent = why || "";
}

async function fetchText(path) {
  const response = await fetch(path, { headers: authorization(), cache: "no-store" });
  if (!response.ok) throw new ServerError(`/${path} answered with status ${response.status}.`);
  return response.text();
}

/* A router's own numbers are at /router; here stand those of its workers together. */
async function fetchMetrics() {
  const text = await fetchText("metrics"), isRouter = text.includes("fathom_router:");
  byId("to-router").hidden = !isRouter;
  return isRouter ? parseWorkers(await fetchText("engine_metrics")) : parseMetrics(text);
}

async function poll() {
  try {
    const now = { t: wallSeconds(), ...await fetchMetrics() };
    const before = readings[readings.length - 1];
    const restarted = before &&
      now.plain.generation_tokens_total < before.plain.generation_tokens_total;
    if (restarted) readings.length = 0;
    readings.push(now);
    while (readings[0].t < now.t - 2 * LATENCY_SECONDS) readings.shift();
    addPoint(point());
    keepTrailNowAndThen();
    if (down) showServer();
    down = false;
    showLink(true);
    drawDashboard();
  } catch (e) {
    down = true;
    const why = "The server cannot be reached; trying again.";
    showLink(false, e instanceof ServerError ? e.message : why);
  }
}

function loadDashboard() {
  const series = (...names) => names.map(([name, key]) => ({ name, key }));
  plots = [
    new Plot({ title: "Tokens per second", format: count, least: 1,
      series: series(["generated", "generated"], ["prompt", "prompt"]) }),
    new Plot({ title: "Requests", format: count, least: 4,
      series: series(["running", "running"], ["waiting", "queued"]) }),
    new Plot({ title: "KV cache", format: percent, top: 1,
      series: series(["held", "usage"], ["evictable", "evictable"], ["prompt hits", "hits"]) }),
    ...LATENCIES.map(([, title, key]) => new Plot({ title, format: seconds, axis: axisSeconds,
      series: series(["p50", `${key}50`], ["p90", `${key}90`], ["p99", `${key}99`]) })),
    new Plot({ title: "Failures per minute", format: count, least: 4,
      series: series(["errors", "errors"], ["aborts", "aborts"], ["bad requests", "bad"]) }),
    new Plot({ title: "Connections", format: count, least: 4, series: series(["open", "connections"]) }),
    new Plot({ title: "Where the time goes", format: percent, top: 1,
      series: series(["forward passes", "forward"], ["around them", "host"], ["between steps", "gaps"]) }),
    new Plot({ title: "Tokens per step", format: (x) => note(x, () => x.toFixed(2)) || "–", least: 2,
      series: series(["accepted", "accepted"]) }),
  ];
  loadTrail();
  byId("plots").replaceChildren(...plots.map((p) => p.figure));
  byId("window").onchange = drawDashboard;
  addEventListener("resize", drawDashboard);
  showServer();
  poll();
  setInterval(() => { if (!document.hidden) poll(); }, POLL_MS);
}
