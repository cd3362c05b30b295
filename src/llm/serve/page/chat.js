/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation: turns as data, each drawn by the view that belongs to it. */
"use strict";

let tree = new Tree(); /* turns: {role, content, thought?, note?, failed?, usage?, ...} */
let running = null;    /* the AbortController of the answer in progress */
let modelName = "";
let chatId = "", lastKept = "";

const KEEP_MS = 1000; /* how often an answer in progress is kept */
const log = byId("log"), promptBox = byId("prompt");

/* The chat goes to the browser's storage; this window remembers which one it shows. */
function keepChat() {
  const text = JSON.stringify(tree);
  if (text === lastKept || (!tree.turns.length && !lastKept)) return;
  lastKept = text;
  if (!writeChat(chatId, tree)) say("The browser has no room left: this chat is not kept.");
  showChats();
}

/* Shows another chat; an answer in progress ends as far as it came. */
function openChat(id) {
  stopAnswer();
  keepChat();
  running = null;
  chatId = id;
  remember(sessionStorage, "fathom-open", id);
  tree = new Tree(recallJson(CHAT + id));
  lastKept = tree.turns.length ? JSON.stringify(tree) : "";
  closeInterrupted();
  setBusy(false);
  redraw();
  showChats();
  leaveChatPanel();
  promptBox.focus();
}

function newChat() {
  openChat(newChatId());
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

function redraw() {
  const path = tree.path();
  byId("empty").hidden = path.length > 0;
  for (const old of log.querySelectorAll(".turn")) old.remove();
  for (const turn of path) {
    if (turn.role === "user") { log.append(viewUser(turn)); continue; }
    const view = viewAnswer(turn);
    log.append(view.root);
    drawAnswer(view, false);
  }
  markLeftOut(path);
  showGauge(path, promptBox.value);
  log.scrollTop = log.scrollHeight;
}

/* Thoughts are not part of what the model is told. */
function messages(turns) {
  const said = turns.flatMap((t) =>
    (t.calls || []).length ? callMessages(t) : [{ role: t.role, content: t.content }]);
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
  if (turn.leftOut) parts.push(`${turn.leftOut} older turn${turn.leftOut === 1 ? "" : "s"} left out`);
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

/* Asks with as many of the turns as fit: where the server finds them too long, with fewer. */
async function askFitting(turn, turns, stop, on) {
  let sent = settings.full === "drop" ?
    firstTry(turns, settings.system, Math.floor(settings.max_tokens) || 64) : turns;
  for (;;) {
    turn.leftOut = turns.length - sent.length;
    turn.firstSent = sent[0] && sent[0].id;
    turn.sentCharacters = allCharacters(sent) + settings.system.length;
    const body = { messages: messages(sent), stream: true, stream_options: { include_usage: true },
      ...samplingFields(), ...toolFields() };
    if (modelName) body.model = modelName;
    try {
      return await streamChat(body, stop.signal, on);
    } catch (e) {
      const rest = e.tooLong && settings.full === "drop" && fewer(sent, settings.system, e.message);
      if (!rest) throw e;
      sent = rest;
    }
  }
}

/* What a reload cut off: kept as far as it came. */
function closeInterrupted() {
  for (const turn of tree.turns.filter((t) => t.partial)) {
    delete turn.partial;
    if (turn.content || turn.thought) turn.note = "interrupted";
    else turn.failed = "The page was left before the answer began.";
  }
}

/* Streams one answer into `turn`.  Drawing is bound to the screen's rate, not to the tokens'. */
async function fill(turn, view, stop) {
  const clock = { sent: performance.now(), first: 0, last: 0 };
  let frame = 0, kept = clock.sent;
  turn.partial = true;
  let wait = 0; /* a long answer is drawn less often: at most a third of the time goes into it */
  const draw = () => {
    const began = performance.now();
    frame = 0;
    following(() => drawAnswer(view, true));
    wait = performance.now() + 2 * (performance.now() - began);
  };
  const arrived = () => {
    clock.last = performance.now();
    if (!clock.first) clock.first = clock.last;
    if (!frame && clock.last >= wait) frame = requestAnimationFrame(draw);
    if (clock.last > kept + KEEP_MS) { kept = clock.last; keepChat(); }
  };
  try {
    await askFitting(turn, sendable(tree.before(turn)), stop, {
      thought: (t) => {
        arrived();
        turn.thought = (turn.thought || "") + t;
        turn.thoughtSeconds = (clock.last - clock.first) / 1000;
      },
      text: (t) => { arrived(); turn.content += t; },
      calls: (pieces) => { arrived(); turn.calls = joinCalls(turn.calls || [], pieces); },
      usage: (u) => { turn.usage = u; },
      finish: (f) => { turn.finish = f; },
    });
  } catch (e) {
    if (stop.signal.aborted) turn.stopped = true;
    else {
      turn.failed = e instanceof ServerError || e instanceof InputError ? e.message :
        "The server cannot be reached.";
      turn.tooLong = e.tooLong;
    }
  }
  cancelAnimationFrame(frame);
  delete turn.partial;
  turn.note = turn.failed && !turn.content ? "" : describe(turn, clock, turn.usage);
}

/* Answers what the path ends with; `parent`: another version of the answer to that turn. */
async function answer(parent) {
  const turn = { role: "assistant", content: "" };
  if (parent === undefined) tree.addLast(turn);
  else tree.add(parent, turn);
  const view = viewAnswer(turn), stop = new AbortController();
  running = stop;
  setBusy(true);
  say("Answering");
  if (parent !== undefined) redraw();
  for (const old of log.querySelectorAll(`[data-turn="${turn.id}"]`)) old.remove();
  following(() => { log.append(view.root); drawAnswer(view, true); });
  log.scrollTop = log.scrollHeight;
  await fill(turn, view, stop);
  if (running !== stop) return; /* another chat was opened meanwhile */
  running = null;
  keepChat();
  following(() => drawAnswer(view, false));
  markLeftOut(tree.path());
  showGauge(tree.path(), promptBox.value);
  setBusy(false);
  say(turn.failed ? "" : turn.stopped ? "Stopped" : "Answer finished");
}

/* A failed answer is replaced; a good one gets a sibling. */
function answerAgain(turn) {
  if (running) return;
  const { parent } = turn;
  if (turn.failed && !turn.content) tree.remove(turn);
  answer(parent);
}

function showVersion(turn) {
  if (running) return;
  tree.choose(turn);
  keepChat();
  redraw();
}

function deleteTurn(turn) {
  if (running) return;
  tree.remove(turn);
  keepChat();
  redraw();
  promptBox.focus();
}

function submit() {
  const content = promptBox.value.trim();
  if (!content || running) return;
  const turn = tree.addLast({ role: "user", content });
  keepChat();
  promptBox.value = "";
  growPrompt();
  byId("empty").hidden = true;
  log.append(viewUser(turn));
  answer();
}

function stopAnswer() {
  if (running) running.abort();
}

function growPrompt() {
  promptBox.style.height = "auto";
  promptBox.style.height = `${promptBox.scrollHeight}px`;
}

/* Up in an empty box: the last message again. */
function editLast(e) {
  const asked = tree.path().filter((t) => t.role === "user").pop();
  const text = asked && log.querySelector(`[data-turn="${asked.id}"] .text`);
  if (!text || running) return;
  e.preventDefault();
  editMessage(asked, text);
}

function loadChat() {
  openChat(recall(sessionStorage, "fathom-open") || newChatId());
  loadExamples((prompt) => { promptBox.value = prompt; submit(); });
  addEventListener("pagehide", keepChat);
  byId("composer").addEventListener("submit", (e) => { e.preventDefault(); submit(); });
  byId("stop").onclick = stopAnswer;
  byId("clear").onclick = newChat;
  promptBox.addEventListener("input", () => {
    growPrompt();
    showGauge(tree.path(), promptBox.value);
  });
  promptBox.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
    if (e.key === "ArrowUp" && !promptBox.value) editLast(e);
  });
}
