/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the page: lanes are [difference of begins, duration, row, rows] in microseconds; a negative row is a block
 * of several spans, and its fourth number says of how many. */
"use strict";

const STEP = 0, PHASE = 1, WORK = 2, COLLECTIVE = 3, GAP = 5, IDLE = 6;

function unpackLane(flat) {
  const n = flat.length / 4, begin = new Float64Array(n), length = new Float64Array(n);
  const row = new Int32Array(n), rows = new Uint32Array(n);
  for (let i = 0, at = 0; i < n; i++) {
    at += flat[4 * i];
    begin[i] = at;
    length[i] = flat[4 * i + 1];
    row[i] = flat[4 * i + 2];
    rows[i] = flat[4 * i + 3];
  }
  return { n, begin, length, row, rows };
}

/* The first span that may reach beyond t; long ones before it are rare in a lane. */
function firstAfter(lane, t) {
  let low = 0, high = lane.n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.begin[middle] + lane.length[middle] < t) low = middle + 1; else high = middle;
  }
  return low;
}

function colorOf(row) {
  const [kind] = DATA.keys[row];
  if (kind === GAP) return "#d0342c";
  if (kind === IDLE) return "#8884";
  if (kind === PHASE) return `hsl(${(200 + 31 * row) % 360} 8% 62%)`;
  if (kind === COLLECTIVE) return `hsl(${25 + (17 * row) % 30} 85% 52%)`;
  if (kind === STEP) return `hsl(${(180 + 67 * row) % 360} 35% 60%)`;
  return `hsl(${(137.5 * row) % 360} 52% 48%)`;
}

function nameOf(row) { return DATA.keys[row < 0 ? -1 - row : row][1]; }

function timeText(seconds) {
  const s = Math.abs(seconds);
  if (s >= 1) return `${seconds.toFixed(2)} s`;
  if (s >= 1e-3) return `${(1e3 * seconds).toFixed(2)} ms`;
  return `${(1e6 * seconds).toFixed(1)} µs`;
}

function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

/* A canvas as wide as its place, sharp on dense screens. */
function prepare(canvas, high) {
  const dense = window.devicePixelRatio || 1, wide = canvas.parentElement.clientWidth;
  canvas.style.height = `${high}px`;
  canvas.width = Math.round(wide * dense);
  canvas.height = Math.round(high * dense);
  const pen = canvas.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  return { pen, wide };
}
