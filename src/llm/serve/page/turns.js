/* SPDX-License-Identifier: Apache-2.0 */
/* How turns are drawn: messages, answers, and what can be done with each. */
"use strict";

const LONG_MESSAGE = 1500;

/* ‹ 2/3 ›: the versions of a turn; nothing if there is one. */
function versions(turn) {
  const all = tree.versions(turn), i = all.indexOf(turn);
  if (all.length < 2) return [];
  const go = (k, name, sign) => {
    const button = element("button", { class: "plain step", type: "button", "aria-label": name,
      onclick: () => showVersion(all[k]) }, sign);
    button.disabled = k < 0 || k >= all.length;
    return button;
  };
  return [element("div", { class: "versions", role: "group", "aria-label": "Versions" },
    go(i - 1, "Previous version", "‹"), element("b", {}, `${i + 1}/${all.length}`),
    go(i + 1, "Next version", "›"))];
}

/* A box in place of `text`: Enter sends what it contains to `done`, Esc closes it. */
function editInPlace(text, start, label, done) {
  const box = element("textarea", { "aria-label": label, rows: "3" });
  const form = element("form", { class: "edit" }, box, element("div", { class: "edit-end" },
    plainButton("Cancel", () => form.replaceWith(text)),
    element("button", { class: "primary", type: "submit" }, "Send")));
  box.value = start;
  form.onsubmit = (e) => { e.preventDefault(); if (box.value.trim() && !running) done(box.value.trim()); };
  box.onkeydown = (e) => {
    if (e.key === "Escape") { e.stopPropagation(); form.replaceWith(text); }
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); form.requestSubmit(); }
  };
  text.replaceWith(form);
  box.style.height = `${Math.min(box.scrollHeight + 2, innerHeight / 2)}px`;
  box.focus();
}

function viewUser(turn) {
  const text = element("div", { class: "text" }, turn.content);
  if (turn.content.length > LONG_MESSAGE) text.tabIndex = 0; /* it scrolls: keys must reach it */
  const edit = plainButton("Edit", () => editMessage(turn, text));
  const copy = plainButton("Copy", () => copyText(turn.content, copy));
  const acts = element("div", { class: "acts" }, edit, copy,
    plainButton("Delete", () => deleteTurn(turn)), ...versions(turn));
  return element("article", { class: "turn user", "aria-label": "You", "data-turn": turn.id },
    text, acts);
}

function editMessage(turn, text) {
  editInPlace(text, turn.content, "Edit your message", (content) => {
    tree.add(turn.parent, { role: "user", content });
    redraw();
    answer();
  });
}

function viewAnswer(turn) {
  const summary = element("summary", {}, "Thought"), thought = element("div", { class: "thought" });
  const think = element("details", { class: "think" }, summary, thought);
  const wait = element("div", { class: "wait" }), text = element("div", { class: "text" });
  const calls = element("div", { class: "calls" }), after = element("div", { class: "after" });
  const root = element("article", { class: "turn answer", "aria-label": "Answer",
    "data-turn": turn.id }, think, wait, text, calls, after);
  return { root, think, summary, thought, wait, text, calls, after, turn };
}

function drawAnswer(view, busy) {
  const { turn } = view;
  view.root.classList.toggle("busy", busy);
  view.think.hidden = !turn.thought;
  if (view.thought.textContent !== turn.thought) view.thought.textContent = turn.thought || "";
  view.summary.textContent = busy && !turn.content ? "Thinking…" :
    turn.thoughtSeconds ? `Thought for ${seconds(turn.thoughtSeconds)}` : "Thought";
  const acts = Boolean(turn.content || (turn.calls || []).length);
  if (!busy && turn.thought && !acts) view.think.open = true; /* nothing else to read */
  view.wait.hidden = !busy || acts;
  view.text.replaceChildren(...markdown(turn.content || ""));
  view.calls.replaceChildren(...callCards(turn, busy, () => { redraw(); answer(); }));
  view.after.replaceChildren();
  if (!busy) drawAfter(view);
}

function drawAfter({ turn, after, root }) {
  const copy = plainButton("Copy", () => copyText(turn.content, copy));
  if (turn.content) after.append(copy);
  if (!turn.failed) after.append(plainButton("Try again", () => answerAgain(turn)));
  after.append(plainButton("Delete", () => deleteTurn(turn)), ...versions(turn));
  if (turn.note) after.append(element("span", {}, turn.note));
  const old = root.querySelector(".error");
  if (old) old.remove();
  if (turn.failed) root.append(errorOf(turn));
}

/* What went wrong, and the ways on. */
function errorOf(turn) {
  const box = element("div", { class: "error", role: "alert" }, element("span", {}, turn.failed));
  const way = (name, onclick) => box.append(element("button", { type: "button", onclick }, name));
  way("Try again", () => answerAgain(turn));
  if (!turn.tooLong) return box;
  const asked = tree.before(turn).pop();
  way("Edit message", () => {
    const view = log.querySelector(`[data-turn="${asked.id}"] .text`);
    if (view) editMessage(asked, view);
  });
  way("Delete message", () => deleteTurn(asked));
  return box;
}

/* Turns above the first one that was sent stay to be read, but are not told again. */
function markLeftOut(path) {
  for (const old of log.querySelectorAll(".cut")) old.remove();
  const last = [...path].reverse().find((t) => t.role === "assistant" && t.firstSent);
  const first = last && log.querySelector(`[data-turn="${last.firstSent}"]`);
  if (!last || !last.leftOut || !first) return;
  first.before(element("div", { class: "cut", role: "note" },
    "The turns above no longer fit the context; the model does not see them."));
}
