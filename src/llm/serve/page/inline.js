/* SPDX-License-Identifier: Apache-2.0 */
/* Markdown inside a line, as DOM nodes.  Text only ever becomes text nodes, and
 * links lead to http, https and mailto alone, so nothing an answer contains can act
 * on the page.  Pictures become links: the page loads nothing. */
"use strict";

const INLINE = new RegExp([
  /(?<tick>`+)(?!`)(?<code>[\s\S]*?[^`])\k<tick>(?!`)/,
  /\\\((?<paren>[\s\S]+?)\\\)|\\\[(?<bracket>[\s\S]+?)\\\]|\$\$(?<dollars>[^$]+?)\$\$/,
  /(?<![\w$\\])\$(?=[^\s$])(?<dollar>[^$\n]*?[^\s$\\]|[^\s$\\])\$(?![\d$])/, /* but not $5 and $6 */
  /\\(?<escaped>[!-/:-@[-`{-~])/,
  /!?\[(?<label>[^\]\n]*)\]\((?<address>(?:https?:\/\/|mailto:)[^\s)]+)(?:\s+"[^"\n]*")?\)/,
  /<(?<angle>https?:\/\/[^\s<>]+)>|(?<![\w/])(?<bare>https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_~])/,
  /\*\*\*(?=\S)(?<both>[^*]*?\S)\*\*\*/,
  /\*\*(?=\S)(?<strong>[\s\S]*?\S)\*\*(?!\*)|(?<!\w)__(?=\S)(?<strong2>[^_]*?\S)__(?!\w)/,
  /(?<![\w*])\*(?=[^\s*])(?<em>[^*\n]*?[^\s*]|[^\s*])\*(?!\w)/, /* but not 3 * 4 */
  /(?<!\w)_(?=[^\s_])(?<em2>[^_\n]*?[^\s_]|[^\s_])_(?!\w)/,
  /~~(?=\S)(?<struck>[^~\n]*?\S)~~/,
].map((r) => r.source).join("|"), "g");
const INLINE_LONGEST = 20000; /* longer than any paragraph: matching takes n * n */
const INLINE_DEEPEST = 8;

function link(address, ...children) {
  return element("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

/* The node for one match. */
function marked(g, depth) {
  const inside = (text) => inline(text, depth + 1), strong = g.strong ?? g.strong2, em = g.em ?? g.em2;
  const formula = g.paren ?? g.dollar, display = g.bracket ?? g.dollars, address = g.angle ?? g.bare;
  if (g.code !== undefined) return element("code", {}, g.code.trim() || g.code);
  if (formula !== undefined) return latex(formula, false);
  if (display !== undefined) return latex(display, true);
  if (g.escaped !== undefined) return g.escaped;
  if (g.address !== undefined) return link(g.address, ...(g.label ? inside(g.label) : [g.address]));
  if (address !== undefined) return link(address, address);
  if (g.both !== undefined) return element("strong", {}, element("em", {}, ...inside(g.both)));
  if (strong !== undefined) return element("strong", {}, ...inside(strong));
  if (em !== undefined) return element("em", {}, ...inside(em));
  return element("del", {}, ...inside(g.struck));
}

function inline(text, depth = 0) {
  if (text.length > INLINE_LONGEST || depth > INLINE_DEEPEST) return [text];
  const out = [];
  let at = 0;
  for (const m of text.matchAll(INLINE)) {
    out.push(text.slice(at, m.index), marked(m.groups, depth));
    at = m.index + m[0].length;
  }
  out.push(text.slice(at));
  return out.filter((x) => x !== "");
}
