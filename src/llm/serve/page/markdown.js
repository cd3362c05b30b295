/* SPDX-License-Identifier: Apache-2.0 */
/* The part of Markdown that models write, as DOM nodes: the blocks. */
"use strict";

const BLOCKS_DEEPEST = 12; /* lists and quotes inside each other; deeper ones are text */
const FENCE = /^\s*(```+|~~~+)\s*([\w+#.-]*)/;
const ITEM = /^(\s*)([-*+]|(\d{1,9})[.)])(\s+|$)(.*)$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const FORMULA = [[/^\s*\$\$/, /\$\$\s*$/], [/^\s*\\\[/, /\\\]\s*[.,;]?\s*$/],
  [/^\s*\\begin\{(?:equation|align|gather)\*?\}/, /\\end\{(?:equation|align|gather)\*?\}\s*$/]];

function codeBlock(language, text) {
  const copy = plainButton("Copy", () => copyText(text, copy));
  return element("div", { class: "code" },
    element("header", {}, language || "text", copy),
    element("pre", { tabindex: "0" }, element("code", {}, ...highlight(language, text))));
}

/* A bar inside code or after a backslash does not part cells. */
function cellsOf(line) {
  const text = line.trim().replace(/^\||(?<!\\)\|$/g, "");
  return (text.match(/(?:\\[\s\S]|`[^`]*`|[^|])+|(?<=\|)(?=\||$)|^(?=\|)/g) || [""])
    .map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function table(lines) {
  const sides = cellsOf(lines[1]).map((c) => (/^:.*:$/.test(c) ? "center" : /:$/.test(c) ? "right" : ""));
  const row = (line, tag) => element("tr", {}, ...cellsOf(line).map((text, i) =>
    element(tag, { ...(tag === "th" ? { scope: "col" } : {}), class: sides[i] || "" }, ...inline(text))));
  return element("div", { class: "scroll", tabindex: "0" }, element("table", {},
    element("thead", {}, row(lines[0], "th")),
    element("tbody", {}, ...lines.slice(2).map((line) => row(line, "td")))));
}

function listItem({ text, inside }, depth) {
  const task = text.match(/^\[([ xX])\]\s+(.*)$/), li = element("li", {});
  if (task) {
    const box = element("input", { type: "checkbox", disabled: "", "aria-label": task[1] === " " ? "open" : "done" });
    box.checked = task[1] !== " ";
    li.className = "task";
    li.append(box);
  }
  li.append(...inline(task ? task[2] : text));
  if (inside.some((l) => l.trim())) li.append(...blocks(inside, depth + 1));
  return li;
}

/* One list: items of one kind at one depth; what stands deeper belongs to the item before it. */
function list(lines, depth) {
  const first = lines[0].match(ITEM), items = [];
  let indent = 0;
  for (const line of lines) {
    const m = line.match(ITEM);
    if (m && m[1].length <= first[1].length + 1) {
      items.push({ text: m[5], inside: [] });
      indent = m[1].length + m[2].length + Math.min(m[4].length || 1, 4);
    } else {
      const white = line.match(/^\s*/)[0].length;
      items[items.length - 1].inside.push(line.slice(Math.min(white, indent)));
    }
  }
  const nodes = items.map((item) => listItem(item, depth));
  return first[3] ? element("ol", { start: first[3] }, ...nodes) : element("ul", {}, ...nodes);
}

/* How many of `lines`, from i on, satisfy `more`. */
function run(lines, i, more) {
  let n = 0;
  while (i + n < lines.length && more(lines[i + n], n)) n++;
  return lines.slice(i, i + n);
}

function listLines(lines, i) {
  const first = lines[i].match(ITEM), depth = first[1].length;
  const kind = (m) => (m[3] ? "number" : "mark"), deeper = (l) => /^\s+\S/.test(l) && l.search(/\S/) > depth;
  const belongs = (l) => {
    const m = l.match(ITEM);
    if (m && m[1].length <= depth + 1) return m[1].length >= depth && kind(m) === kind(first) && !RULE.test(l);
    return deeper(l);
  };
  return run(lines, i, (l, n) => belongs(l) ||
    (!l.trim() && belongs(lines.slice(i + n).find((x) => x.trim()) || "")));
}

function fencedBlock(lines, i, out) {
  const [, fenceSign, language] = lines[i].match(FENCE);
  const white = lines[i].search(/\S/);
  const closes = (l) => l.trim().startsWith(fenceSign) && !l.trim().replace(/[`~]/g, "");
  const inside = run(lines, i + 1, (l) => !closes(l));
  const text = inside.map((l) => l.slice(Math.min(white, Math.max(0, l.search(/\S|$/))))).join("\n");
  out.push(codeBlock(language, text));
  return i + inside.length + 2;
}

/* A formula on lines of its own; 0 if none begins here or it has no end (yet). */
function formulaLines(lines, i) {
  for (const [opens, closes] of FORMULA) {
    if (!opens.test(lines[i])) continue;
    const rest = lines[i].replace(opens, "");
    if (closes.test(rest)) return 1;
    const inside = run(lines, i + 1, (l, n) => !closes.test(l) && n < 200);
    return i + 1 + inside.length < lines.length && inside.length < 200 ? inside.length + 2 : 0;
  }
  return 0;
}

function formulaBlock(lines) {
  const text = lines.join("\n").trim();
  const bare = text.startsWith("\\begin") ? text :
    text.replace(/^(\$\$|\\\[)/, "").replace(/(\$\$|\\\][\s.,;]*)$/, "");
  return element("div", { class: "formula", tabindex: "0" }, latex(bare.trim(), true));
}

function startsTable(lines, i) {
  return lines[i].includes("|") && TABLE_RULE.test(lines[i + 1] || "") && lines[i + 1].includes("-") &&
    cellsOf(lines[i]).length === cellsOf(lines[i + 1]).length;
}

function startsBlock(lines, i) {
  const line = lines[i];
  return FENCE.test(line) || ITEM.test(line) || /^#{1,6}\s|^\s{0,3}>/.test(line) || RULE.test(line) ||
    FORMULA.some(([opens]) => opens.test(line)) || startsTable(lines, i);
}

function paragraph(lines, i, out) {
  const part = run(lines, i, (l, n) => l.trim() && (n === 0 || !startsBlock(lines, i + n)));
  const pieces = part.map((l) => l.trimEnd() + (/ {2}$|\\$/.test(l) ? "\u0000" : ""));
  const p = element("p");
  pieces.join("\n").replace(/\\\u0000/g, "\u0000").split("\u0000\n").forEach((piece, n) => {
    if (n) p.append(element("br"));
    p.append(...inline(piece.replace(/\u0000/g, "")));
  });
  out.push(p);
  return i + part.length;
}

function oneBlock(lines, i, out, depth) {
  const line = lines[i], heading = line.match(/^(#{1,6})\s+(.*)$/), formula = formulaLines(lines, i);
  if (FENCE.test(line)) return fencedBlock(lines, i, out);
  if (heading) {
    const level = Math.min(heading[1].length + 2, 5);
    out.push(element(`h${level}`, {}, ...inline(heading[2].replace(/\s#+\s*$/, ""))));
    return i + 1;
  }
  if (formula) { out.push(formulaBlock(lines.slice(i, i + formula))); return i + formula; }
  if (RULE.test(line)) { out.push(element("hr")); return i + 1; }
  if (depth < BLOCKS_DEEPEST && ITEM.test(line)) {
    const part = listLines(lines, i);
    out.push(list(part, depth));
    return i + part.length;
  }
  if (depth < BLOCKS_DEEPEST && /^\s{0,3}>/.test(line)) {
    const part = run(lines, i, (l) => /^\s{0,3}>/.test(l));
    out.push(element("blockquote", {}, ...blocks(part.map((l) => l.replace(/^\s{0,3}>\s?/, "")), depth + 1)));
    return i + part.length;
  }
  if (startsTable(lines, i)) {
    const part = run(lines, i, (l, n) => l.includes("|") || n === 1);
    out.push(table(part));
    return i + part.length;
  }
  return paragraph(lines, i, out);
}

function blocks(lines, depth = 0) {
  const out = [];
  for (let i = 0; i < lines.length;) {
    if (lines[i].trim()) i = oneBlock(lines, i, out, depth);
    else i++;
  }
  return out;
}

function markdown(text) {
  return blocks(text.replace(/\u0000/g, "\ufffd").replace(/\r\n?/g, "\n").split("\n"));
}
