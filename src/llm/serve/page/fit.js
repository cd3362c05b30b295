/* SPDX-License-Identifier: Apache-2.0 */
/* Which turns are sent, and how much of the context they fill.  The server counts
 * tokens; between its counts they are estimated from the number of characters. */
"use strict";

const FIRST_GUESS = 3.2; /* characters per token before the server has counted any */
const KEEP_FREE = 0.25;  /* share of the context left for what follows, once turns are left out */
let contextTokens = 0;   /* 0: not known */

function characters(turn) {
  const calls = turn.calls ? JSON.stringify(turn.calls).length : 0;
  return (turn.content || "").length + calls + 12; /* what marks a turn is a few tokens */
}

function allCharacters(turns) {
  return turns.reduce((sum, t) => sum + characters(t), 0);
}

/* A message that got no answer is not told to the model again, unless it is the last. */
function sendable(path) {
  const failed = (t) => t && t.role === "assistant" && !t.content && !(t.calls || []).length && !t.usage;
  return path.filter((t, i) => !failed(t) && !(t.role === "user" && failed(path[i + 1])));
}

/* The last answer the server has counted: {turn, total, perToken}. */
function lastCount(path) {
  const turn = [...path].reverse().find((t) => t.usage);
  if (!turn) return { turn: null, total: 0, perToken: FIRST_GUESS };
  const { prompt_tokens: prompt, completion_tokens: answer } = turn.usage;
  return { turn, total: prompt + answer, perToken: Math.max(1, turn.sentCharacters / prompt) };
}

/* Tokens the path and a draft fill, as far as they would be sent. */
function filledTokens(path, draft, system) {
  const { turn, total, perToken } = lastCount(path);
  const after = sendable(turn ? path.slice(path.indexOf(turn) + 1) : path);
  const more = allCharacters(after) + draft.length + (turn ? 0 : system.length);
  return Math.round(total + more / perToken);
}

/* The turns from the first user's message on for which what follows takes at most
 * `most` characters; the last message always stays. */
function newestTurns(turns, most) {
  let from = turns.length - 1, sum = 0;
  while (from > 0 && turns[from].role !== "user") from--;
  for (let i = turns.length - 1, start = from; i >= 0; i--) {
    sum += characters(turns[i]);
    if (i < start && sum > most) break;
    if (turns[i].role === "user") from = i;
  }
  return turns.slice(from);
}

/* The turns to send first: all, or the newest if all are surely too many. */
function firstTry(turns, system, reserve) {
  const { turn, total, perToken } = lastCount(turns);
  const all = allCharacters(turns) + system.length;
  const after = turn ? allCharacters(turns.slice(turns.indexOf(turn) + 1)) : all;
  const tokens = (turn && !turn.leftOut ? total : 0) + (turn && turn.leftOut ? all : after) / perToken;
  if (!contextTokens || tokens + reserve <= contextTokens) return turns;
  const room = Math.min(contextTokens * (1 - KEEP_FREE), contextTokens - reserve);
  return newestTurns(turns, room * perToken - system.length);
}

/* Fewer turns after the server has refused `sent` as too long, or null: there is
 * only the last message left. */
function fewer(sent, system, refusal) {
  const said = String(refusal).match(/resulted in (\d+) tokens|\((\d+) in the messages/);
  const size = allCharacters(sent) + system.length, tokens = said ? Number(said[1] || said[2]) : 0;
  const most = tokens && contextTokens ? contextTokens * (1 - KEEP_FREE) * size / tokens : size / 2;
  const second = sent.findIndex((t, i) => i > 0 && t.role === "user");
  if (second < 0) return null;
  const rest = newestTurns(sent, most - system.length);
  return rest.length < sent.length ? rest : sent.slice(second);
}

function showGauge(path, draft) {
  const gauge = byId("gauge"), filled = filledTokens(path, draft, settings.system);
  gauge.hidden = byId("gauge-text").hidden = !contextTokens;
  if (!contextTokens) return;
  const share = filled / contextTokens;
  gauge.setAttribute("aria-valuemax", contextTokens);
  gauge.setAttribute("aria-valuenow", Math.min(filled, contextTokens));
  gauge.dataset.level = share > 1 ? "over" : share > 0.8 ? "high" : "low";
  gauge.firstElementChild.style.width = `${100 * Math.min(1, share)}%`;
  byId("gauge-text").textContent = `${count(filled)} of ${count(contextTokens)} tokens`;
}
