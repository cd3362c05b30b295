/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus text -> numbers, and quantiles from cumulative histograms. */
"use strict";

/* The prefix is the server's choice (fathom:, sglang:, vllm:); of names that stand
 * under several, the first prefix counts. */
const SAMPLE = /^(\w+):([\w:]+)(?:\{(.*)\})?\s+(\S+)/;

function number(text) {
  return text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text);
}

/* {plain: {name: value}, histograms: {name: {le: [...], count: [...], sum, n}}}; label sets
 * of one name are added up. */
function parseMetrics(text) {
  const plain = {}, buckets = {}, prefixOf = new Map();
  for (const line of text.split("\n")) {
    const m = line.match(SAMPLE);
    if (!m) continue;
    const [, prefix, name, labels = "", value] = m;
    if (!prefixOf.has(name)) prefixOf.set(name, prefix);
    if (prefixOf.get(name) !== prefix) continue;
    if (name.endsWith("_bucket")) {
      const le = (labels.match(/(?:^|,)le="([^"]*)"/) || [])[1];
      const of = (buckets[name.slice(0, -7)] ||= new Map());
      of.set(number(le), (of.get(number(le)) || 0) + number(value));
    } else {
      plain[name] = (plain[name] || 0) + number(value);
    }
  }
  const histograms = {};
  for (const [name, of] of Object.entries(buckets)) {
    const le = [...of.keys()].sort((a, b) => a - b);
    const sum = plain[`${name}_sum`] || 0, n = plain[`${name}_count`] || 0;
    histograms[name] = { le, count: le.map((x) => of.get(x)), sum, n };
  }
  return { plain, histograms };
}

/* Of several workers behind a router: shares are averaged, all else is added up. */
const SHARES = ["token_usage", "cache_hit_rate", "spec_accept_length", "spec_accept_rate", "hicache_storage_on"];

function parseWorkers(text) {
  const all = parseMetrics(text), n = new Set(text.match(/\{worker="[^"]*"/g)).size;
  for (const name of SHARES) if (name in all.plain) all.plain[name] /= n;
  return all;
}

/* What was observed between two readings; a restarted server counts from zero. */
function since(now, before) {
  if (!now || !before || now.n < before.n || now.le.length !== before.le.length) return now;
  const count = now.count.map((c, i) => c - before.count[i]);
  return { le: now.le, count, sum: now.sum - before.sum, n: now.n - before.n };
}

/* Linear inside the bucket, as Prometheus does it; NaN without observations. */
function quantile(q, h) {
  const total = h && h.count.length ? h.count[h.count.length - 1] : 0;
  if (!(total > 0)) return NaN;
  const rank = q * total, i = h.count.findIndex((c) => c >= rank);
  if (i === h.le.length - 1 && h.le[i] === Infinity) return i ? h.le[i - 1] : NaN;
  const lo = i ? h.le[i - 1] : 0, below = i ? h.count[i - 1] : 0, inside = h.count[i] - below;
  return lo + (h.le[i] - lo) * (inside > 0 ? (rank - below) / inside : 1);
}

function seconds(s) {
  if (!Number.isFinite(s)) return "–";
  if (s < 0.001) return `${Math.round(s * 1e6)} µs`;
  if (s < 0.0995) return `${(s * 1000).toFixed(1)} ms`;
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  return s < 99.95 ? `${s.toFixed(s < 9.995 ? 2 : 1)} s` : `${Math.round(s)} s`;
}

/* On an axis, where the numbers are round. */
function axisSeconds(s) {
  return s < 1 ? `${+(s * 1000).toPrecision(3)} ms` : `${+s.toPrecision(3)} s`;
}

function count(x) {
  if (!Number.isFinite(x)) return "–";
  if (x >= 1e7) return `${(x / 1e6).toFixed(1)} M`;
  if (x >= 1e5) return `${(x / 1e3).toFixed(0)} k`;
  if (x >= 1000) return Math.round(x).toLocaleString("en-US");
  return x >= 100 || Number.isInteger(x) ? String(Math.round(x)) : x.toFixed(1);
}

function bytes(x) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const i = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, x)) / 3));
  return `${+(x / 1000 ** i).toPrecision(3)} ${units[i]}`;
}

function percent(x) {
  return Number.isFinite(x) ? `${(100 * x).toFixed(x > 0 && x < 0.1 ? 1 : 0)} %` : "–";
}
