/* SPDX-License-Identifier: Apache-2.0 */
/* What the plots show, kept in the browser so that a reload does not lose it. */
"use strict";

const KEEP_SECONDS = 3600, FINE_SECONDS = 600, COARSE_SECONDS = 10, GAP_SECONDS = 15;
const TRAIL_MS = 10000; /* how often it is kept */
const trail = [];       /* {t, key: value}; t in seconds since 1970 */
let trailKept = 0;

function wallSeconds() {
  return (performance.timeOrigin + performance.now()) / 1000;
}

/* After a gap in the samples (the page was closed) the line breaks. */
function addPoint(point) {
  const last = trail[trail.length - 1];
  if (last && point.t - last.t > GAP_SECONDS) trail.push({ t: last.t + 0.001 });
  trail.push(point);
  while (trail[0].t < point.t - KEEP_SECONDS) trail.shift();
}

/* All of the last minutes, one point in ten seconds before. */
function thinned(points) {
  const now = points.length ? points[points.length - 1].t : 0;
  let last = -Infinity;
  return points.filter((p) => {
    const keep = p.t > now - FINE_SECONDS || p.t - last >= COARSE_SECONDS || Object.keys(p).length === 1;
    if (keep) last = p.t;
    return keep;
  });
}

function keepTrail() {
  const short = (key, x) => (key !== "t" && typeof x === "number" ? Number(x.toPrecision(4)) : x);
  remember(localStorage, "fathom-trail", JSON.stringify(thinned(trail), short));
}

function keepTrailNowAndThen() {
  if (performance.now() - trailKept < TRAIL_MS) return;
  trailKept = performance.now();
  keepTrail();
}

function loadTrail() {
  let kept = [];
  try { kept = JSON.parse(recall(localStorage, "fathom-trail") || "[]"); } catch { /* not ours */ }
  const now = wallSeconds(), fits = (p) => p && p.t > now - KEEP_SECONDS && p.t <= now;
  if (Array.isArray(kept)) trail.push(...kept.filter(fits));
  addEventListener("pagehide", keepTrail);
}
