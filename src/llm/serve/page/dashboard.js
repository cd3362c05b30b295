/* SPDX-License-Identifier: Apache-2.0 */
/* Polls /metrics and /server_info and shows what they say, now and over time. */
"use strict";

const POLL_MS = 2000, KEEP_SECONDS = 3600;
const RATE_SECONDS = 6, LATENCY_SECONDS = 30; /* what one point of a plot averages over */

const LATENCIES = [
  ["time_to_first_token_seconds", "Time to first token", "ttft"],
  ["inter_token_latency_seconds", "Between tokens", "itl"],
  ["e2e_request_latency_seconds", "Whole request", "e2e"],
];

const readings = []; /* {t, plain, histograms}: the raw ones, for differences */
const trail = [];    /* {t, key: value}: what is plotted */
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
  };
  for (const [name, , key] of LATENCIES) {
    const h = since(now.histograms[name], reading(LATENCY_SECONDS).histograms[name]);
    for (const q of [50, 90, 99]) out[key + q] = readings.length > 1 ? quantile(q / 100, h) : NaN;
  }
  return out;
}

function requests(n) {
  return n === 1 ? "request" : "requests";
}

/* Only if the number is there. */
function note(x, text) {
  return Number.isFinite(x) ? text(x) : "";
}

/* [name, value, unit, more, share of a bar] */
function tiles() {
  const now = trail[trail.length - 1], p = readings[readings.length - 1].plain;
  const used = p.num_used_tokens ?? p.kv_used_tokens, most = p.max_total_num_tokens;
  const [first, unit] = seconds(now.ttft50).split(" ");
  return [
    ["Generating", count(now.generated), "tok/s",
      note(now.prompt, (x) => `prompts ${count(x)} tok/s`)],
    ["Running", count(now.running), requests(now.running),
      note(p.num_requests_total, (x) => `${count(x)} since start`)],
    ["Waiting", count(now.queued), requests(now.queued),
      note(p.num_retracted_requests_total || NaN, (x) => `${count(x)} retracted`)],
    ["KV cache", percent(now.usage), "",
      note(used / most, () => `${count(used)} of ${count(most)} tokens`), now.usage],
    ["Cache hits", percent(now.hits), "",
      note(p.cached_tokens_total, (x) => `${count(x)} tokens reused`), now.hits],
    ["First token", first, unit || "",
      note(now.ttft99, (x) => `median; p99 ${seconds(x)}`) || "no request in 30 s"],
  ];
}

function showTiles() {
  byId("tiles").replaceChildren(...tiles().map(([name, value, unit, more, share]) => {
    const tile = element("div", { class: "tile" }, element("div", { class: "name" }, name),
      element("div", { class: "value" }, value, element("span", { class: "unit" }, unit)),
      element("div", { class: "more" }, more));
    if (share !== undefined) {
      const fill = element("i");
      fill.style.width = `${100 * Math.min(1, share || 0)}%`;
      tile.append(element("div", { class: "meter" }, fill));
    }
    return tile;
  }));
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
  for (const plot of plots) plot.draw(trail, from, to);
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

async function poll() {
  try {
    const response = await fetch("metrics", { headers: authorization(), cache: "no-store" });
    if (!response.ok) throw new ServerError(`/metrics answered with status ${response.status}.`);
    const now = { t: performance.now() / 1000, ...parseMetrics(await response.text()) };
    const before = readings[readings.length - 1];
    const restarted = before &&
      now.plain.generation_tokens_total < before.plain.generation_tokens_total;
    if (restarted) readings.length = 0;
    readings.push(now);
    while (readings[0].t < now.t - 2 * LATENCY_SECONDS) readings.shift();
    trail.push(point());
    while (trail[0].t < now.t - KEEP_SECONDS) trail.shift();
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
      series: series(["in use", "usage"], ["prompt hits", "hits"]) }),
    ...LATENCIES.map(([, title, key]) => new Plot({ title, format: seconds, axis: axisSeconds,
      series: series(["p50", `${key}50`], ["p90", `${key}90`], ["p99", `${key}99`]) })),
  ];
  byId("plots").replaceChildren(...plots.map((p) => p.figure));
  byId("window").onchange = drawDashboard;
  addEventListener("resize", drawDashboard);
  showServer();
  poll();
  setInterval(() => { if (!document.hidden) poll(); }, POLL_MS);
}
