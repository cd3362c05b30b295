/* SPDX-License-Identifier: Apache-2.0 */
/* Tools the model may call and a schema its answer must follow: both typed by the
 * user as JSON.  A call is shown as a card; the user types what the tool returned. */
"use strict";

class InputError extends Error {}

function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (e) {
    throw new InputError(`${what}: ${e.message}`);
  }
}

/* One tool or a list, with or without the wrapping {type: "function"}. */
function toolList(text) {
  const given = parsed(text, "Tools");
  return (Array.isArray(given) ? given : [given]).map((tool) => {
    const inner = tool && tool.function ? tool.function : tool;
    if (!inner || typeof inner.name !== "string")
      throw new InputError('Tools: each needs a "name", a "description" and "parameters"');
    return { type: "function", function: inner };
  });
}

function responseFormat(text) {
  const given = parsed(text, "JSON schema");
  if (given === null || typeof given !== "object" || Array.isArray(given))
    throw new InputError("JSON schema: expected an object");
  if (given.type === "json_schema" || given.type === "json_object") return given;
  const whole = given.schema && given.name ? given : { name: "answer", schema: given };
  return { type: "json_schema", json_schema: { strict: true, ...whole } };
}

/* The two boxes as fields of a request; throws InputError. */
function toolFields() {
  const fields = {};
  if (settings.tools.trim()) fields.tools = toolList(settings.tools);
  if (settings.schema.trim()) fields.response_format = responseFormat(settings.schema);
  return fields;
}

/* Says under a box what is wrong with it, while it is typed. */
function checkBox(name, read) {
  const box = byId(name), why = byId(`${name}-error`);
  let text = "";
  try { if (box.value.trim()) read(box.value); } catch (e) { text = e.message; }
  box.setAttribute("aria-invalid", String(Boolean(text)));
  why.hidden = !text;
  why.textContent = text;
}

function loadTools() {
  for (const [name, read] of [["tools", toolList], ["schema", responseFormat]]) {
    byId(name).addEventListener("input", () => checkBox(name, read));
    checkBox(name, read);
  }
  byId("reset").addEventListener("click", () => {
    checkBox("tools", toolList);
    checkBox("schema", responseFormat);
  });
}

/* Pieces of calls, as they stream: joined by index. */
function joinCalls(calls, pieces) {
  for (const piece of pieces) {
    const call = (calls[piece.index || 0] ||= { id: "", name: "", arguments: "" });
    if (piece.id) call.id = piece.id;
    if (piece.function && piece.function.name) call.name += piece.function.name;
    if (piece.function && piece.function.arguments) call.arguments += piece.function.arguments;
  }
  return calls;
}

/* An answer with calls as messages: itself, then a result for each call. */
function callMessages(turn) {
  const calls = turn.calls.map((c) => ({ id: c.id, type: "function",
    function: { name: c.name, arguments: c.arguments } }));
  const results = turn.calls.map((c) => ({ role: "tool", tool_call_id: c.id,
    content: c.result === undefined ? "" : c.result }));
  return [{ role: "assistant", content: turn.content || "", tool_calls: calls }, ...results];
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

function callCard(call, busy) {
  const card = element("section", { class: "call", "aria-label": `Call of ${call.name}` },
    element("header", {}, element("span", { class: "kind" }, "Tool"), element("b", {}, call.name || "…")),
    element("pre", { tabindex: "0" }, element("code", {}, busy ? call.arguments : pretty(call.arguments))));
  if (call.result !== undefined)
    card.append(element("header", { class: "result" }, element("span", { class: "kind" }, "Result")),
      element("pre", { tabindex: "0" }, element("code", {}, pretty(call.result))));
  return card;
}

/* The calls of an answer; those without a result have a box for it. */
function callCards(turn, busy, send) {
  const cards = (turn.calls || []).map((call) => callCard(call, busy));
  const open = busy ? [] : (turn.calls || []).filter((call) => call.result === undefined);
  if (!open.length) return cards;
  const form = element("form", { class: "results" });
  for (const call of open) {
    const box = element("textarea", { rows: "2", placeholder: "What the tool returned",
      "aria-label": `Result of ${call.name}` });
    cards[turn.calls.indexOf(call)].append(box);
  }
  form.append(...cards, element("div", { class: "edit-end" },
    element("button", { class: "primary", type: "submit" },
      open.length === 1 ? "Send result" : "Send results")));
  form.onsubmit = (e) => {
    e.preventDefault();
    [...form.querySelectorAll("textarea")].forEach((box, i) => { open[i].result = box.value; });
    send();
  };
  return [form];
}
