/* SPDX-License-Identifier: Apache-2.0 */
"use strict";

const place = (id) => document.getElementById(id);

place("title").textContent = `fathom trace: ${DATA.command}`;
place("subtitle").textContent = `${DATA.program}, ${DATA.ranks.length} rank${DATA.ranks.length > 1 ? "s" : ""}, ` +
  `${(DATA.ended - DATA.began).toFixed(1)} s shown`;
place("verdict").replaceChildren(...DATA.verdict.trim().split("\n").map((line) => element("li", {}, line)));
place("tables").textContent = DATA.tables.trim();
place("roof-help").textContent = DATA.limits ? "A circle is an op at one intensity, its area the time it takes; the lines are the machine's limits."
  : "A circle is an op at one intensity, its area the time it takes.  The machine's limits are drawn if --rates names them.";

const timeline = new Timeline(place("timeline"), place("pointed"));
const roof = new Roof(place("roof"));

function drawAll() {
  drawRanks(place("ranks"), place("legend"));
  timeline.draw();
  roof.draw();
  const n = drawTasks(place("tasks"), place("tasks-legend"));
  place("tasks-title").textContent = `${n} ${DATA.task || "task"}s`;
}

drawAll();
window.addEventListener("resize", drawAll);
document.documentElement.dataset.ready = String(Math.round(performance.now()));
