/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers at the top of the dashboard: what the server does now. */
"use strict";

function plural(n, word) {
  return n === 1 ? word : `${word}s`;
}

/* Only if the number is there. */
function note(x, text) {
  return Number.isFinite(x) ? text(x) : "";
}

/* Parts of a sentence that are there, joined. */
function notes(...parts) {
  return parts.filter(Boolean).join(" · ");
}

/* Pages that requests hold, then pages kept for later prompts, which make room when needed. */
function kvTile(now, p) {
  const used = p.num_used_tokens ?? p.kv_used_tokens, most = p.max_total_num_tokens;
  const idle = p.kv_evictable_tokens;
  return ["KV cache", percent(now.usage), "held",
    notes(note(used / most, () => `${count(used)} of ${count(most)} tokens`),
      note(idle, (x) => `${count(x)} evictable`)), [now.usage, now.evictable]];
}

function failureTiles(p) {
  const failed = (p.http_5xx_total ?? NaN) + (p.nonfinite_logits_total || 0);
  return [
    ["Errors", count(failed), "since start",
      notes(note(p.http_4xx_total, (x) => `${count(x)} bad ${plural(x, "request")}`),
        note(p.num_refused_requests_total || NaN, (x) => `${count(x)} refused, queue full`),
        note(p.nonfinite_logits_total || NaN, (x) => `${count(x)} not finite`))],
    ["Aborted", count(p.num_aborted_requests_total ?? NaN), plural(p.num_aborted_requests_total, "request"),
      note(p.num_retracted_requests_total || NaN, (x) => `${count(x)} retracted`)],
    ["Connections", count(p.num_connections ?? NaN), "open", ""],
  ];
}

/* Which tier prompt tokens came from, what moved between tiers, what is on its way. */
function tiersTile(p) {
  const host = p.cached_tokens_host_total || 0, files = p.cached_tokens_storage_total || 0;
  const share = (x) => x / p.prompt_tokens_total, device = p.cached_tokens_total - host - files;
  const moved = (name) => (p[`hicache_host_${name}_bytes_total`] || 0) + (p[`hicache_storage_${name}_bytes_total`] || 0);
  return ["KV tiers", percent(share(host + files)), "from below the pool",
    notes(note(share(device), (x) => `pool ${percent(x)}`), note(share(host), (x) => `host ${percent(x)}`),
      note(share(files), (x) => `files ${percent(x)}`), `${bytes(moved("read"))} read`, `${bytes(moved("written"))} written`,
      note(p.hicache_storage_queue, (x) => `${count(x)} queued`), p.hicache_storage_on === 0 ? "file tier off" : ""),
    [share(device), share(host + files)]];
}

/* [name, value, unit, more, shares of a bar] */
function tiles() {
  const now = trail[trail.length - 1], p = readings[readings.length - 1].plain;
  const [first, unit] = seconds(now.ttft50).split(" ");
  const out = [
    ["Generating", count(now.generated), "tok/s",
      note(now.prompt, (x) => `prompts ${count(x)} tok/s`)],
    ["Running", count(now.running), plural(now.running, "request"),
      note(p.num_requests_total, (x) => `${count(x)} since start`)],
    ["Waiting", count(now.queued), plural(now.queued, "request"), ""],
    kvTile(now, p),
    ["Cache hits", percent(now.hits), "",
      notes(note(p.cached_tokens_total, (x) => `${count(x)} tokens reused`),
        note(p.cached_tokens_host_total || NaN, (x) => `${count(x)} from host memory`),
        note(p.cached_tokens_storage_total || NaN, (x) => `${count(x)} from files`)), [now.hits]],
    ["First token", first, unit || "",
      note(now.ttft99, (x) => `median; p99 ${seconds(x)}`) || "no request in 30 s"],
    ...failureTiles(p),
  ];
  if ("hicache_loads_total" in p) out.push(tiersTile(p));
  if (Number.isFinite(now.accepted))
    out.push(["Speculation", now.accepted.toFixed(2), "tok/step",
      note(p.spec_accept_rate, (x) => `${percent(x)} of drafts accepted`) || "accepted, on average"]);
  return out;
}

function meter(shares) {
  const bar = element("div", { class: "meter" });
  for (const share of shares) {
    const fill = element("i");
    fill.style.width = `${100 * Math.min(1, share || 0)}%`;
    bar.append(fill);
  }
  return bar;
}

function showTiles() {
  byId("tiles").replaceChildren(...tiles().map(([name, value, unit, more, shares]) => {
    const tile = element("div", { class: "tile" }, element("div", { class: "name" }, name),
      element("div", { class: "value" }, value, " ", element("span", { class: "unit" }, unit)),
      element("div", { class: "more" }, more));
    if (shares) tile.append(meter(shares));
    return tile;
  }));
}
