/* SPDX-License-Identifier: Apache-2.0 */
/* The part of Markdown that models write, as DOM nodes.  Text only ever becomes
 * text nodes, so nothing an answer contains can act on the page. */
"use strict";

const INLINE = new RegExp([
  /(`+)(?!`)([\s\S]*?[^`])\1(?!`)/,                   /* `code` */
  /\*\*(?=\S)([\s\S]*?\S)\*\*/,                       /* **strong** */
  /(?<![\w*])\*(?=[^\s*])([^*\n]*?[^\s*])\*(?!\w)/,   /* *emphasis*, but not 3 * 4 */
  /\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)/,           /* [text](address) */
].map((r) => r.source).join("|"), "g");
const INLINE_LIMIT = 20000; /* longer than any paragraph: matching takes n * n */

function inline(text) {
  if (text.length > INLINE_LIMIT) return [text];
  const out = [];
  let at = 0;
  for (const m of text.matchAll(INLINE)) {
    out.push(text.slice(at, m.index));
    if (m[1]) out.push(element("code", {}, m[2].trim() || m[2]));
    else if (m[3]) out.push(element("strong", {}, ...inline(m[3])));
    else if (m[4]) out.push(element("em", {}, ...inline(m[4])));
    else out.push(element("a", { href: m[6], target: "_blank", rel: "noopener noreferrer" }, m[5]));
    at = m.index + m[0].length;
  }
  out.push(text.slice(at));
  return out.filter((x) => x !== "");
}

function codeBlock(language, text) {
  const copy = plainButton("Copy", () => copyText(text, copy));
  return element("div", { class: "code" },
    element("header", {}, language || "text", copy),
    element("pre", { tabindex: "0" }, element("code", {}, text)));
}

function tableRow(line) {
  return line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim()));
}

function table(lines) {
  const head = tableRow(lines[0]).map((c) => element("th", { scope: "col" }, ...c));
  const rows = lines.slice(2).map((line) =>
    element("tr", {}, ...tableRow(line).map((c) => element("td", {}, ...c))));
  return element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
}

const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;

/* Items deeper than the first belong to a list inside it. */
function list(lines) {
  const first = lines[0].match(ITEM), depth = first[1].length, items = [];
  for (const line of lines) {
    const m = line.match(ITEM);
    if (m && m[1].length <= depth) items.push({ text: m[3], inside: [] });
    else items[items.length - 1].inside.push(line);
  }
  const nodes = items.map(({ text, inside }) => {
    const li = element("li", {}, ...inline(text));
    if (inside.length) li.append(...blocks(inside.map((l) => l.replace(/^\s{1,4}/, ""))));
    return li;
  });
  return first[2] ? element("ol", { start: first[2] }, ...nodes) : element("ul", {}, ...nodes);
}

/* How many of `lines`, from i on, satisfy `more`. */
function run(lines, i, more) {
  let n = 0;
  while (i + n < lines.length && more(lines[i + n], n)) n++;
  return lines.slice(i, i + n);
}

const FENCE = /^\s*(```+|~~~+)\s*([\w+#.-]*)/;
const STARTS_BLOCK = (line) => FENCE.test(line) || ITEM.test(line) || /^#{1,6}\s|^>/.test(line);

function fenced(lines, i, out) {
  const [, fence, language] = lines[i].match(FENCE);
  const closes = (l) => l.trim().startsWith(fence) && !l.trim().replace(/[`~]/g, "");
  const inside = run(lines, i + 1, (l) => !closes(l));
  out.push(codeBlock(language, inside.join("\n")));
  return i + inside.length + 2;
}

function oneBlock(lines, i, out) {
  const line = lines[i];
  let m;
  if (FENCE.test(line)) return fenced(lines, i, out);
  if ((m = line.match(/^(#{1,6})\s+(.*)$/))) {
    out.push(element(`h${Math.min(m[1].length + 2, 5)}`, {}, ...inline(m[2].replace(/\s#+$/, ""))));
    return i + 1;
  }
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) { out.push(element("hr")); return i + 1; }
  if (ITEM.test(line)) {
    const part = run(lines, i, (l, n) => ITEM.test(l) || (l.trim() && /^\s/.test(l)) ||
      (!l.trim() && ITEM.test(lines[i + n + 1] || "")));
    out.push(list(part.filter((l) => l.trim())));
    return i + part.length;
  }
  if (line.startsWith(">")) {
    const part = run(lines, i, (l) => l.startsWith(">"));
    out.push(element("blockquote", {}, ...blocks(part.map((l) => l.replace(/^>\s?/, "")))));
    return i + part.length;
  }
  if (line.includes("|") && /^\s*\|?[\s:-]*-[\s|:-]*\|[\s|:-]*$/.test(lines[i + 1] || "")) {
    const part = run(lines, i, (l) => l.includes("|"));
    out.push(table(part));
    return i + part.length;
  }
  const part = run(lines, i, (l, n) => l.trim() && (n === 0 || !STARTS_BLOCK(l)));
  const p = element("p");
  part.forEach((l, n) => {
    if (n) p.append(/ {2}$/.test(part[n - 1]) ? element("br") : "\n");
    p.append(...inline(l.trimEnd()));
  });
  out.push(p);
  return i + part.length;
}

function blocks(lines) {
  const out = [];
  for (let i = 0; i < lines.length;) {
    if (lines[i].trim()) i = oneBlock(lines, i, out);
    else i++;
  }
  return out;
}

function markdown(text) {
  return blocks(text.split("\n"));
}
