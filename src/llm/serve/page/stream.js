/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to this server: JSON, and answers that arrive as server-sent events. */
"use strict";

/* tooLong: the messages do not fit the model's context. */
class ServerError extends Error {
  constructor(text, tooLong = false, status = 0) {
    super(text);
    this.tooLong = tooLong;
    this.status = status;
  }
}

function isTooLong(error) {
  return error.code === "context_length_exceeded" ||
    /maximum context length/.test(error.message || "");
}

/* An error body: nested as OpenAI's, flat, or plain text. */
function errorFrom(status, body) {
  try {
    const e = JSON.parse(body);
    const text = (e.error && e.error.message) || e.message || e.error;
    if (typeof text === "string") return [text, isTooLong(e.error || e)];
  } catch { /* not JSON: fall through to the text itself */ }
  return [body.trim().slice(0, 300) || `The server answered with status ${status}.`, false];
}

async function checked(response) {
  if (response.ok) return response;
  let [text, tooLong] = errorFrom(response.status, await response.text());
  const wait = response.headers.get("retry-after");
  if (wait) text += ` Try again in ${wait} s.`;
  if (response.status === 401 || response.status === 403)
    text += " Enter the API key under Settings.";
  throw new ServerError(text, tooLong, response.status);
}

/* Yields the data of each event.  Events may be cut anywhere by the network,
 * inside a character too. */
async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "", data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      held += value;
      const lines = held.split(/\r\n|\n/);
      held = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
        else if (line === "" && data.length) { yield data.join("\n"); data = []; }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function authorization() {
  return settings.key ? { Authorization: `Bearer ${settings.key}` } : {};
}

async function getJson(path) {
  const asked = await fetch(path, { headers: authorization(), cache: "no-store" });
  return (await checked(asked)).json();
}

/* Streams one chat completion: calls on.thought(text), on.text(text), on.calls(pieces),
 * on.usage(usage), on.finish(reason) as they come. */
async function streamChat(body, signal, on) {
  const response = await checked(await fetch("v1/chat/completions", {
    method: "POST", signal, body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...authorization() },
  }));
  for await (const data of readEvents(response.body)) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data);
    if (event.error)
      throw new ServerError(event.error.message || "The server stopped with an error.",
        isTooLong(event.error));
    if (event.usage) on.usage(event.usage);
    const choice = event.choices && event.choices[0];
    if (!choice) continue;
    const delta = choice.delta || {};
    if (delta.reasoning_content) on.thought(delta.reasoning_content);
    if (delta.content) on.text(delta.content);
    if (delta.tool_calls) on.calls(delta.tool_calls);
    if (choice.finish_reason) on.finish(choice.finish_reason);
  }
  throw new ServerError("The connection ended before the answer did.");
}
