/* SPDX-License-Identifier: Apache-2.0 */
/* Every rank's lanes over time; zooms and moves. */
"use strict";

class Timeline {
  constructor(canvas, pointed) {
    this.canvas = canvas;
    this.pointed = pointed;
    this.lanes = DATA.lanes.map((rank) => rank.map(unpackLane));
    this.all = [1e6 * DATA.began, 1e6 * DATA.ended];
    this.view = [...this.all];
    this.left = 60;
    this.high = 13;
    canvas.addEventListener("wheel", (e) => { e.preventDefault(); this.zoom(e.deltaY > 0 ? 1.25 : 0.8, e.offsetX); },
      { passive: false });
    canvas.addEventListener("pointerdown", (e) => { this.grip = e.offsetX; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointerup", () => { this.grip = null; });
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("dblclick", () => this.show(this.all));
    canvas.addEventListener("keydown", (e) => this.key(e));
  }

  rowOf(rank, lane) { return 16 + rank * (4 * this.high + 8) + lane * this.high; }

  perPixel() { return (this.view[1] - this.view[0]) / Math.max(1, this.wide - this.left); }

  show([from, to]) {
    const least = 5; /* microseconds */
    const span = Math.min(Math.max(to - from, least), this.all[1] - this.all[0]);
    const begin = Math.min(Math.max(from, this.all[0]), this.all[1] - span);
    this.view = [begin, begin + span];
    this.draw();
  }

  zoom(by, x) {
    const at = this.view[0] + (x - this.left) * this.perPixel();
    this.show([at - (at - this.view[0]) * by, at + (this.view[1] - at) * by]);
  }

  shift(pixels) {
    const by = pixels * this.perPixel();
    this.show([this.view[0] + by, this.view[1] + by]);
  }

  key(e) {
    const middle = this.left + (this.wide - this.left) / 2;
    const act = { "+": () => this.zoom(0.5, middle), "=": () => this.zoom(0.5, middle), "-": () => this.zoom(2, middle),
      ArrowLeft: () => this.shift(-100), ArrowRight: () => this.shift(100), 0: () => this.show(this.all) }[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  }

  move(e) {
    if (this.grip !== null && this.grip !== undefined) {
      this.shift(this.grip - e.offsetX);
      this.grip = e.offsetX;
      return;
    }
    this.pointed.textContent = this.describe(e.offsetX, e.offsetY) || "\u00a0";
  }

  describe(x, y) {
    const rank = Math.floor((y - 16) / (4 * this.high + 8)), lane = Math.floor((y - this.rowOf(rank, 0)) / this.high);
    const spans = this.lanes[rank] && this.lanes[rank][lane];
    if (!spans || x < this.left) return "";
    const t = this.view[0] + (x - this.left) * this.perPixel(), i = firstAfter(spans, t);
    if (i >= spans.n || spans.begin[i] > t + 2 * this.perPixel()) return "";
    const many = spans.row[i] < 0, [kind] = DATA.keys[many ? -1 - spans.row[i] : spans.row[i]];
    const what = many ? `${spans.rows[i]} spans, most ${nameOf(spans.row[i])}` : nameOf(spans.row[i]);
    const rows = !many && (kind === WORK || kind === STEP) ? `, ${spans.rows[i]} rows` : "";
    return `rank ${DATA.ranks[rank].rank}: ${what}, ${timeText(1e-6 * spans.length[i])}${rows}, at ` +
      `${(1e-6 * spans.begin[i]).toFixed(6)} s`;
  }

  /* Of spans that share a pixel the first is drawn, with the width they have together. */
  drawLane(lane, y) {
    const each = this.perPixel(), { pen } = this;
    let done = this.left - 1;
    for (let i = firstAfter(lane, this.view[0]); i < lane.n && lane.begin[i] < this.view[1]; i++) {
      const x = Math.max(this.left, this.left + (lane.begin[i] - this.view[0]) / each);
      const end = Math.min(this.wide, this.left + (lane.begin[i] + lane.length[i] - this.view[0]) / each);
      if (end < done + 0.5) continue;
      pen.fillStyle = colorOf(lane.row[i] < 0 ? -1 - lane.row[i] : lane.row[i]);
      pen.fillRect(x, y, Math.max(0.6, end - x - (end - x > 3 ? 0.5 : 0)), this.high - 2);
      done = Math.max(end, x + 0.6);
      if (end - x > 60) this.label(nameOf(lane.row[i]), x + 3, y, end - x - 6);
    }
  }

  label(text, x, y, wide) {
    const { pen } = this;
    pen.fillStyle = "#fff";
    if (pen.measureText(text).width < wide) pen.fillText(text, x, y + this.high - 4);
  }

  drawAxis() {
    const { pen } = this, span = this.view[1] - this.view[0];
    const step = [1, 2, 5, 10].map((k) => k * 10 ** Math.floor(Math.log10(span / 6))).find((s) => span / s <= 10) || span;
    pen.fillStyle = getComputedStyle(document.body).color;
    for (let t = Math.ceil(this.view[0] / step) * step; t < this.view[1]; t += step) {
      const x = this.left + (t - this.view[0]) / this.perPixel();
      pen.fillRect(x, 12, 1, 3);
      pen.fillText(timeText(1e-6 * t), x + 2, 10);
    }
  }

  draw() {
    const high = this.rowOf(this.lanes.length, 0);
    Object.assign(this, prepare(this.canvas, high));
    const { pen } = this;
    pen.font = "10px system-ui, sans-serif";
    pen.clearRect(0, 0, this.wide, high);
    this.drawAxis();
    this.lanes.forEach((rank, r) => {
      pen.fillStyle = getComputedStyle(document.body).color;
      pen.fillText(`rank ${DATA.ranks[r].rank}`, 2, this.rowOf(r, 2));
      rank.forEach((lane, l) => this.drawLane(lane, this.rowOf(r, l)));
    });
  }
}
