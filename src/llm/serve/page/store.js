/* SPDX-License-Identifier: Apache-2.0 */
/* Chats kept in this browser: each under a key of its own, so that two windows do
 * not overwrite each other's, and its title under another, so that the list is cheap. */
"use strict";

const CHAT = "fathom-chat-", TITLE = "fathom-title-";

function keysOf(store) {
  try { return Object.keys(store); } catch { return []; }
}

function recallJson(key) {
  try { return JSON.parse(recall(localStorage, key)) || {}; } catch { return {}; }
}

/* [{id, title, named, when}], the newest first. */
function keptChats() {
  return keysOf(localStorage).filter((key) => key.startsWith(TITLE))
    .map((key) => ({ ...recallJson(key), id: key.slice(TITLE.length) }))
    .sort((a, b) => (b.when || 0) - (a.when || 0));
}

function titleOf(turns) {
  const first = turns.find((t) => t.role === "user");
  return first ? first.content.trim().replace(/\s+/g, " ").slice(0, 80) : "New chat";
}

/* False: the browser has no room for it. */
function writeChat(id, { turns, chosen }) {
  const before = recallJson(TITLE + id);
  const title = before.named ? before.title : titleOf(turns);
  return remember(localStorage, CHAT + id, JSON.stringify({ turns, chosen })) &&
    remember(localStorage, TITLE + id, JSON.stringify({ title, named: before.named, when: Date.now() }));
}

function renameChat(id, title) {
  remember(localStorage, TITLE + id, JSON.stringify({ ...recallJson(TITLE + id), title, named: true }));
}

function dropChat(id) {
  try { localStorage.removeItem(CHAT + id); localStorage.removeItem(TITLE + id); } catch { /* none */ }
}

function newChatId() {
  return Date.now().toString(36) + Math.floor(Math.random() * 1e9).toString(36);
}

/* Text that occurs in the title or in what was said. */
function chatMatches({ id, title = "" }, query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted || title.toLowerCase().includes(wanted)) return true;
  const inJson = JSON.stringify(wanted).slice(1, -1);
  return (recall(localStorage, CHAT + id) || "").toLowerCase().includes(inJson);
}

function exportChats() {
  const chats = keptChats().map(({ id, title, named, when }) =>
    ({ title, named, when, ...recallJson(CHAT + id) }));
  return JSON.stringify({ format: "fathom-chats", version: 1, chats }, null, 1);
}

/* Only fields of the right kind are taken from a file. */
const TURN_FIELDS = { id: "number", parent: "number", role: "string", content: "string", thought: "string",
  thoughtSeconds: "number", note: "string", failed: "string", stopped: "boolean", finish: "string" };

function cleanTurn(given) {
  const turn = {};
  for (const [name, kind] of Object.entries(TURN_FIELDS))
    if (typeof given[name] === kind) turn[name] = given[name];
  if (Array.isArray(given.calls))
    turn.calls = given.calls.map((c) => ({ id: String(c.id), name: String(c.name), arguments: String(c.arguments),
      ...(c.result === undefined ? {} : { result: String(c.result) }) }));
  const whole = turn.id > 0 && turn.parent >= 0 && typeof turn.content === "string";
  if (!whole || !["user", "assistant"].includes(turn.role)) throw new InputError("a turn is not whole");
  return turn;
}

function cleanTree({ turns, chosen }) {
  const clean = turns.map(cleanTurn), tree = new Tree({ turns: clean, chosen: {} });
  for (const [parent, child] of Object.entries(chosen || {})) tree.chosen[Number(parent)] = Number(child);
  tree.prune();
  return tree;
}

/* How many chats were added; throws InputError before anything is. */
function importChats(text) {
  let trees;
  try {
    const { format, chats } = JSON.parse(text);
    if (format !== "fathom-chats") throw new InputError("it is not an export of this page");
    trees = chats.map((chat) => [chat, cleanTree(chat)]);
  } catch (e) {
    throw new InputError(`The file cannot be imported: ${e.message}`);
  }
  for (const [{ title, named }, tree] of trees) {
    const id = newChatId();
    if (!writeChat(id, tree)) throw new InputError("The browser has no room for these chats.");
    if (named && typeof title === "string") renameChat(id, title.slice(0, 200));
  }
  return trees.length;
}

/* What is shown, as Markdown. */
function chatAsMarkdown(path) {
  return path.map((t) => `## ${t.role === "user" ? "You" : "Answer"}\n\n` +
    (t.calls || []).map((c) => `\`${c.name}(${c.arguments})\`\n\n`).join("") + `${t.content}\n`).join("\n");
}
