/* SPDX-License-Identifier: Apache-2.0 */
/* Bars of the ranks' time, and the roofline. */
"use strict";

const PARTS = [["computes", "#0b6e78"], ["waits for ranks", "#d0342c"], ["moves bytes", "#e08a1e"], ["host phases", "#7a4fb5"],
  ["awaits a plan", "#a58fd0"], ["gaps", "#b23a70"], ["between ops", "#8a969a"]];

function legendOf(parts) {
  return parts.map(([name, color]) => element("span", {}, element("i", { style: `background:${color}` }), name));
}

function drawRanks(place, legend) {
  legend.replaceChildren(...legendOf(PARTS));
  place.replaceChildren(...DATA.ranks.map((r) => {
    const active = Math.max(r.wall - r.idle, 1e-9);
    const bar = element("div", { class: "bar" }, ...r.parts.map((s, i) => element("span", {
      style: `background:${PARTS[i][1]};width:${(100 * s / active).toFixed(2)}%`,
      title: `${PARTS[i][0]} ${(100 * s / active).toFixed(1)} %` })));
    const late = r.caused > 0 ? `others waited ${timeText(r.caused)}` : "";
    return element("div", { class: "rank" }, element("span", {}, `rank ${r.rank} (${r.host})`), bar,
      element("span", { class: "late" }, late));
  }));
}

/* --- roofline ------------------------------------------------------------------ */

const SVG = "http://www.w3.org/2000/svg";

function shape(tag, attributes, text) {
  const e = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

function power(x) {
  const units = ["", " k", " M", " G", " T", " P"], k = Math.max(0, Math.min(5, Math.floor(Math.log10(x) / 3)));
  return `${+(x / 1000 ** k).toPrecision(3)}${units[k]}`;
}

class Roof {
  constructor(place) {
    this.place = place;
    const peaks = DATA.limits ? Object.values(DATA.limits.peak) : [];
    const x = DATA.points.map((p) => p[1]), y = DATA.points.map((p) => p[2]).concat(peaks);
    this.x = [Math.floor(Math.log10(Math.min(...x, 0.5))), Math.ceil(Math.log10(Math.max(...x, 100)))];
    this.y = [Math.floor(Math.log10(Math.min(...y, 1e9))), Math.ceil(Math.log10(Math.max(...y, 1e10)))];
  }

  draw() {
    const wide = this.place.clientWidth, high = 340;
    const px = (v) => 60 + (Math.log10(v) - this.x[0]) / (this.x[1] - this.x[0]) * (wide - 80);
    const py = (v) => 310 - (Math.log10(v) - this.y[0]) / (this.y[1] - this.y[0]) * 290;
    const picture = shape("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": "Roofline" });
    for (let k = this.x[0]; k <= this.x[1]; k++)
      picture.append(shape("line", { class: "grid", x1: px(10 ** k), x2: px(10 ** k), y1: 20, y2: 310 }),
        shape("text", { x: px(10 ** k), y: 325, "text-anchor": "middle" }, String(10 ** k)));
    for (let k = this.y[0]; k <= this.y[1]; k++)
      picture.append(shape("line", { class: "grid", x1: 60, x2: wide - 20, y1: py(10 ** k), y2: py(10 ** k) }),
        shape("text", { x: 54, y: py(10 ** k) + 4, "text-anchor": "end" }, power(10 ** k)));
    picture.append(shape("text", { x: wide - 20, y: 338, "text-anchor": "end" }, "operations per byte"),
      shape("text", { x: 4, y: 12 }, "FLOP/s"));
    if (DATA.limits) this.drawLimits(picture, px, py);
    const longest = Math.max(...DATA.points.map((p) => p[3]), 1e-9);
    for (const [row, x, y, s] of DATA.points) {
      const dot = shape("circle", { cx: px(x), cy: py(y), r: 2.5 + 15 * Math.sqrt(s / longest), fill: colorOf(row),
        "fill-opacity": 0.75 });
      dot.append(shape("title", {}, `${nameOf(row)}: ${power(y)}FLOP/s at ${x.toPrecision(3)} per byte, ${timeText(s)}`));
      picture.append(dot);
      if (s > 0.05 * longest) picture.append(shape("text", { x: px(x) + 6, y: py(y) - 6 }, nameOf(row)));
    }
    this.place.replaceChildren(picture);
  }

  drawLimits(picture, px, py) {
    const { read, peak } = DATA.limits;
    for (const [name, top] of Object.entries(peak)) {
      const from = 10 ** this.x[0], to = 10 ** this.x[1], ridge = Math.min(Math.max(top / read, from), to);
      picture.append(shape("path", { class: "roof", d: `M${px(from)} ${py(Math.max(from * read, 10 ** this.y[0]))}` +
        `L${px(ridge)} ${py(top)}L${px(to)} ${py(top)}` }),
      shape("text", { x: px(to) - 4, y: py(top) - 4, "text-anchor": "end" }, `${name} ${power(top)}FLOP/s`));
    }
  }
}
