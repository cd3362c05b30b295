/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation: turns as data, each drawn by the view that belongs to it. */
"use strict";

let turns = [];     /* {role, content, thought?, note?, failed?} */
let running = null; /* the AbortController of the answer in progress */
let modelName = "";

const log = byId("log"), promptBox = byId("prompt");

function keepTurns() {
  remember(sessionStorage, "fathom-turns", JSON.stringify(turns));
}

function say(text) {
  byId("spoken").textContent = text;
}

/* Follow the text only while the reader is at the end of it. */
function following(change) {
  const near = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  change();
  if (near) log.scrollTop = log.scrollHeight;
}

function viewUser(turn) {
  return element("article", { class: "turn user", "aria-label": "You" },
    element("div", { class: "text" }, turn.content));
}

function viewAnswer(turn) {
  const summary = element("summary", {}, "Thought"), thought = element("div", { class: "thought" });
  const think = element("details", { class: "think" }, summary, thought);
  const wait = element("div", { class: "wait" }), text = element("div", { class: "text" });
  const after = element("div", { class: "after" });
  const root = element("article", { class: "turn answer", "aria-label": "Answer" },
    think, wait, text, after);
  return { root, think, summary, thought, wait, text, after, turn };
}

function drawAnswer(view, busy) {
  const { turn } = view;
  view.root.classList.toggle("busy", busy);
  view.think.hidden = !turn.thought;
  if (view.thought.textContent !== turn.thought) view.thought.textContent = turn.thought || "";
  view.summary.textContent = busy && !turn.content ? "Thinking…" :
    turn.thoughtSeconds ? `Thought for ${seconds(turn.thoughtSeconds)}` : "Thought";
  if (!busy && turn.thought && !turn.content) view.think.open = true; /* nothing else to read */
  view.wait.hidden = !busy || Boolean(turn.content);
  view.text.replaceChildren(...markdown(turn.content || ""));
  view.after.replaceChildren();
  if (!busy) drawAfter(view);
}

function drawAfter({ turn, after, root }) {
  const copy = plainButton("Copy", () => copyText(turn.content, copy));
  const again = plainButton("Try again", () => answerAgain(turn));
  if (turn.content) after.append(copy);
  if (!turn.failed) after.append(again);
  if (turn.note) after.append(element("span", {}, turn.note));
  const old = root.querySelector(".error");
  if (old) old.remove();
  if (turn.failed)
    root.append(element("div", { class: "error", role: "alert" }, element("span", {}, turn.failed),
      element("button", { type: "button", onclick: () => answerAgain(turn) }, "Try again")));
}

function redraw() {
  byId("empty").hidden = turns.length > 0;
  for (const old of log.querySelectorAll(".turn")) old.remove();
  for (const turn of turns) {
    if (turn.role === "user") { log.append(viewUser(turn)); continue; }
    const view = viewAnswer(turn);
    log.append(view.root);
    drawAnswer(view, false);
  }
  log.scrollTop = log.scrollHeight;
}

/* Failed answers are not part of what the model is told; neither are thoughts. */
function messages() {
  const said = turns.filter((t) => t.role === "user" || t.content)
    .map(({ role, content }) => ({ role, content }));
  return settings.system.trim() ? [{ role: "system", content: settings.system }, ...said] : said;
}

function setBusy(busy) {
  byId("send").hidden = busy;
  byId("stop").hidden = !busy;
  log.setAttribute("aria-busy", String(busy));
}

function describe(turn, clock, usage) {
  const parts = [];
  if (turn.stopped) parts.push("stopped");
  if (turn.finish === "length") parts.push("cut at the token limit");
  const tokens = usage && usage.completion_tokens;
  if (tokens) parts.push(`${tokens} token${tokens === 1 ? "" : "s"}`);
  if (tokens > 1 && clock.last > clock.first)
    parts.push(`${((tokens - 1) / (clock.last - clock.first) * 1000).toFixed(1)} tok/s`);
  if (clock.first) parts.push(`first after ${seconds((clock.first - clock.sent) / 1000)}`);
  const cached = usage && usage.prompt_tokens_details && usage.prompt_tokens_details.cached_tokens;
  if (cached) parts.push(`${cached} of ${usage.prompt_tokens} prompt tokens cached`);
  return parts.join(" · ");
}

/* Streams one answer into `turn`.  Drawing is bound to the screen's rate, not to the tokens'. */
async function fill(turn, view, stop) {
  const clock = { sent: performance.now(), first: 0, last: 0 };
  let usage = null, frame = 0;
  const draw = () => { frame = 0; following(() => drawAnswer(view, true)); };
  const arrived = () => {
    clock.last = performance.now();
    if (!clock.first) clock.first = clock.last;
    if (!frame) frame = requestAnimationFrame(draw);
  };
  const body = { messages: messages(), stream: true, stream_options: { include_usage: true },
    ...samplingFields() };
  if (modelName) body.model = modelName;
  try {
    await streamChat(body, stop.signal, {
      thought: (t) => {
        arrived();
        turn.thought = (turn.thought || "") + t;
        turn.thoughtSeconds = (clock.last - clock.first) / 1000;
      },
      text: (t) => { arrived(); turn.content += t; },
      usage: (u) => { usage = u; },
      finish: (f) => { turn.finish = f; },
    });
  } catch (e) {
    if (stop.signal.aborted) turn.stopped = true;
    else turn.failed = e instanceof ServerError ? e.message : "The server cannot be reached.";
  }
  cancelAnimationFrame(frame);
  turn.note = describe(turn, clock, usage);
}

async function answer() {
  const turn = { role: "assistant", content: "" }, view = viewAnswer(turn);
  const stop = new AbortController();
  running = stop;
  setBusy(true);
  say("Answering");
  following(() => { log.append(view.root); drawAnswer(view, true); });
  log.scrollTop = log.scrollHeight;
  await fill(turn, view, stop);
  if (running !== stop) return; /* a new chat began meanwhile */
  running = null;
  turns.push(turn);
  keepTurns();
  following(() => drawAnswer(view, false));
  setBusy(false);
  say(turn.failed ? "" : turn.stopped ? "Stopped" : "Answer finished");
}

function answerAgain(turn) {
  if (running) return;
  const i = turns.indexOf(turn);
  if (i < 0) return;
  turns = turns.slice(0, i);
  redraw();
  answer();
}

function submit() {
  const content = promptBox.value.trim();
  if (!content || running) return;
  turns.push({ role: "user", content });
  keepTurns();
  promptBox.value = "";
  growPrompt();
  byId("empty").hidden = true;
  log.append(viewUser(turns[turns.length - 1]));
  answer();
}

function stopAnswer() {
  if (running) running.abort();
}

function newChat() {
  stopAnswer();
  running = null;
  turns = [];
  keepTurns();
  setBusy(false);
  redraw();
  promptBox.focus();
}

function growPrompt() {
  promptBox.style.height = "auto";
  promptBox.style.height = `${promptBox.scrollHeight}px`;
}

function loadChat() {
  try { turns = JSON.parse(recall(sessionStorage, "fathom-turns") || "[]"); } catch { turns = []; }
  redraw();
  byId("composer").addEventListener("submit", (e) => { e.preventDefault(); submit(); });
  byId("stop").onclick = stopAnswer;
  byId("clear").onclick = newChat;
  promptBox.addEventListener("input", growPrompt);
  promptBox.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
  });
}
