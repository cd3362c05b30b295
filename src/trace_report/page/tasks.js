/* SPDX-License-Identifier: Apache-2.0 */
/* A line a task, in the order of their beginning: how long it was in each stage. */
"use strict";

const STAGES = ["#9aa5a8", "#e08a1e", "#0b6e78", "#d0342c", "#7a4fb5"];

function gatherTasks() {
  const found = new Map();
  for (const [begin, length, row, id, rows] of DATA.tasks) {
    if (!found.has(id)) found.set(id, { id, begin, end: begin, stages: [] });
    const t = found.get(id);
    t.begin = Math.min(t.begin, begin);
    t.end = Math.max(t.end, begin + length);
    t.stages.push({ begin, length, row, rows });
  }
  return [...found.values()].sort((a, b) => a.begin - b.begin);
}

function stageColors() {
  const rows = DATA.keys.map(([kind], row) => (kind === 4 ? row : -1)).filter((row) => row >= 0);
  return new Map(rows.map((row, i) => [row, STAGES[i % STAGES.length]]));
}

function drawTasks(canvas, legend) {
  const tasks = gatherTasks(), colors = stageColors();
  legend.replaceChildren(...legendOf([...colors].map(([row, color]) => [nameOf(row), color])));
  const each = tasks.length > 400 ? 3 : tasks.length > 80 ? 6 : 12, high = 20 + each * tasks.length;
  const { pen, wide } = prepare(canvas, Math.min(high, 30000));
  const from = Math.min(...tasks.map((t) => t.begin), Infinity), to = Math.max(...tasks.map((t) => t.end), 0);
  const px = (ms) => 8 + (ms - from) / Math.max(to - from, 1e-6) * (wide - 16);
  pen.clearRect(0, 0, wide, high);
  tasks.forEach((t, i) => t.stages.forEach((s) => {
    pen.fillStyle = colors.get(s.row);
    pen.fillRect(px(s.begin), 18 + each * i, Math.max(0.7, px(s.begin + s.length) - px(s.begin)), each - 1);
  }));
  pen.fillStyle = getComputedStyle(document.body).color;
  pen.font = "10px system-ui, sans-serif";
  for (let k = 0; k <= 8; k++)
    if (tasks.length) pen.fillText(timeText(1e-3 * (from + k * (to - from) / 8)), px(from + k * (to - from) / 8) - (k === 8 ? 40 : 0), 11);
  return tasks.length;
}
