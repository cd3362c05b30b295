/* SPDX-License-Identifier: Apache-2.0 */
/* A small line plot over time, drawn as SVG. */
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 52, RIGHT = 6, TOP = 8, BOTTOM = 20, HIGH = 150;

function svg(tag, attributes, text) {
  const e = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

/* Axes end at round numbers whose half is round, too. */
function roundUp(x) {
  const p = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 4, 6, 8, 10].map((k) => k * p).find((v) => v >= x * 0.9999);
}

function at(x, y) {
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}

function lineOf(points, x, y) {
  let d = "", pen = false;
  for (const [t, v] of points) {
    if (Number.isFinite(v)) d += (pen ? "L" : "M") + at(x(t), y(v));
    pen = Number.isFinite(v);
  }
  return d;
}

/* Under the line, down to the axis; pieces between gaps are closed on their own. */
function fillOf(points, x, y) {
  let d = "", piece = [];
  const close = () => {
    if (piece.length > 1) {
      const [first] = piece[0], [last] = piece[piece.length - 1];
      d += `M${at(x(first), y(0))}${piece.map(([t, v]) => `L${at(x(t), y(v))}`).join("")}`;
      d += `L${at(x(last), y(0))}Z`;
    }
    piece = [];
  };
  for (const p of points) if (Number.isFinite(p[1])) piece.push(p); else close();
  close();
  return d;
}

/* {title, format, axis?, top?, least?, series: [{name, key}]}: `axis` writes its labels, `top`
 * fixes its upper end, `least` is the smallest one. */
class Plot {
  constructor(spec) {
    this.spec = spec;
    this.picture = svg("svg", { role: "img" });
    this.values = spec.series.map(() => element("b", {}, "–"));
    const legend = element("span", { class: "legend" }, ...spec.series.map((s, i) =>
      element("span", {}, element("i", { style: `background:var(--s${i + 1})` }),
        `${s.name} `, this.values[i])));
    this.figure = element("figure", { class: "plot" },
      element("figcaption", {}, spec.title, legend), this.picture);
    this.picture.addEventListener("pointermove", (e) => this.point(e.clientX));
    this.picture.addEventListener("pointerleave", () => this.point(null));
    this.at = null;
  }

  point(clientX) {
    this.at = clientX === null ? null : clientX - this.picture.getBoundingClientRect().left;
    if (this.last) this.draw(...this.last);
  }

  /* history: [{t, key: value}], oldest first */
  draw(history, from, to) {
    this.last = [history, from, to];
    const wide = this.picture.clientWidth;
    if (!wide) return; /* not on screen */
    const { spec } = this, shown = history.filter((h) => h.t >= from - 2);
    const lines = spec.series.map((s) => shown.map((h) => [h.t, h[s.key]]));
    const values = lines.flat().map(([, v]) => v).filter(Number.isFinite);
    const most = values.reduce((a, b) => Math.max(a, b), spec.least || 0);
    const top = spec.top || (most > 0 ? roundUp(most) : 1);
    const x = (t) => LEFT + Math.max(0, (t - from) / (to - from)) * (wide - LEFT - RIGHT);
    const y = (v) => TOP + (1 - Math.min(v, top) / top) * (HIGH - TOP - BOTTOM);

    this.picture.setAttribute("viewBox", `0 0 ${wide} ${HIGH}`);
    this.picture.replaceChildren(...this.axes(top, from, to, wide, y));
    lines.forEach((points, i) => this.line(points, i, x, y));
    if (!values.length) {
      const middle = { class: "none", x: (LEFT + wide) / 2, y: HIGH / 2, "text-anchor": "middle" };
      this.picture.append(svg("text", middle, "nothing measured yet"));
    }
    this.report(history, from, to, wide);
  }

  axes(top, from, to, wide, y) {
    const out = [], label = this.spec.axis || this.spec.format;
    for (const v of [0, top / 2, top]) {
      out.push(svg("line", { class: "grid", x1: LEFT, x2: wide - RIGHT, y1: y(v), y2: y(v) }));
      out.push(svg("text", { x: LEFT - 7, y: y(v) + 4, "text-anchor": "end" }, v ? label(v) : "0"));
    }
    const minutes = (to - from) / 60, name = minutes < 60 ? `${minutes} min` : `${minutes / 60} h`;
    out.push(svg("text", { x: LEFT, y: HIGH - 4 }, `${name} ago`));
    out.push(svg("text", { x: wide - RIGHT, y: HIGH - 4, "text-anchor": "end" }, "now"));
    return out;
  }

  line(points, i, x, y) {
    const colour = `var(--s${i + 1})`;
    if (i === 0) { /* a soft ground under the first series */
      const d = fillOf(points, x, y);
      this.picture.append(svg("path", { class: "fill", style: `fill:${colour}`, d }));
    }
    this.picture.append(svg("path", { style: `stroke:${colour}`, d: lineOf(points, x, y) }));
  }

  /* The legend shows the newest reading, or the one under the pointer. */
  report(history, from, to, wide) {
    let chosen = history[history.length - 1];
    if (this.at !== null && history.length) {
      const t = from + ((this.at - LEFT) / (wide - LEFT - RIGHT)) * (to - from);
      chosen = history.reduce((a, b) => (Math.abs(b.t - t) < Math.abs(a.t - t) ? b : a));
      const x = LEFT + ((chosen.t - from) / (to - from)) * (wide - LEFT - RIGHT);
      const down = { class: "cursor", x1: x, x2: x, y1: TOP, y2: HIGH - BOTTOM };
      this.picture.append(svg("line", down));
    }
    const said = this.spec.series.map((s, i) => {
      const text = chosen ? this.spec.format(chosen[s.key]) : "–";
      this.values[i].textContent = text;
      return `${s.name} ${text}`;
    });
    this.picture.setAttribute("aria-label", `${this.spec.title}: ${said.join(", ")}`);
  }
}
