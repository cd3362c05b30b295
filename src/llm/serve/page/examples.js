/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts to begin with. */
"use strict";

const EXAMPLES = [
  ["Explain", "Explain how a mixture-of-experts model routes a token, step by step."],
  ["Derive", "Derive the quadratic formula by completing the square. Use LaTeX."],
  ["Code", "Write a C function that reverses a singly linked list, with a short test."],
  ["Compare", "Compare TCP and UDP in a table: ordering, loss, latency, typical uses."],
];

function loadExamples(choose) {
  byId("examples").replaceChildren(...EXAMPLES.map(([title, prompt]) =>
    element("button", { type: "button", onclick: () => choose(prompt) },
      element("b", {}, title), element("span", {}, prompt))));
}
