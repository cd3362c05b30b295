/* SPDX-License-Identifier: Apache-2.0 */
/* LaTeX's mathematics as MathML, which browsers draw by themselves.  A command that
 * is not known is shown as typed; so is a formula that is too long or too deep. */
"use strict";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const MATH_TOKEN = /\\[a-zA-Z]+|\\[\s\S]|\s+|\d+(?:\.\d+)?|[\s\S]/gu;
const MATH_LONGEST = 8000, MATH_DEEPEST = 60;
const FENCES = { pmatrix: "()", bmatrix: "[]", Bmatrix: "{}", vmatrix: "||", Vmatrix: "‖‖" };
const ALIGNED = new Set(["aligned", "align", "align*", "split", "eqnarray", "alignat", "alignat*"]);
const TABLES = new Set(["matrix", "smallmatrix", "array", "gathered", "gather", "gather*", "equation",
  "equation*", "cases", "rcases", "substack", ...Object.keys(FENCES), ...ALIGNED]);

function math(tag, attributes, ...children) {
  const e = document.createElementNS(MATHML, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

const operator = (sign, more = {}) => math("mo", { stretchy: "false", ...more }, sign);
const fence = (sign, high = 1) => math("mo", { fence: "true", stretchy: "true", class: "fence",
  style: `--high: ${high}` }, sign === "." ? "" : sign);
const together = (nodes) => (nodes.length === 1 ? nodes[0] : math("mrow", {}, ...nodes));

class Latex {
  constructor(text) {
    this.tokens = text.match(MATH_TOKEN) || [];
    this.at = 0;
    this.depth = 0;
  }

  peek() {
    while (/^\s+$/.test(this.tokens[this.at] || "")) this.at++;
    return this.tokens[this.at];
  }

  next() {
    const token = this.peek();
    this.at++;
    return token;
  }

  skip(token) {
    if (this.peek() !== token) return false;
    this.at++;
    return true;
  }

  /* What stands between braces, as typed. */
  raw() {
    if (!this.skip("{")) return this.next() || "";
    let deep = 1, text = "";
    for (; this.at < this.tokens.length; this.at++) {
      const token = this.tokens[this.at];
      deep += token === "{" ? 1 : token === "}" ? -1 : 0;
      if (!deep) { this.at++; break; }
      text += token;
    }
    return text;
  }

  /* Atoms with their scripts until a token that `ends`; that one is not taken. */
  row(ends) {
    if (++this.depth > MATH_DEEPEST) throw new RangeError("too deep");
    const out = [];
    for (let token = this.peek(); token !== undefined && !ends(token); token = this.peek())
      out.push(this.scripts(this.atom(this.next())));
    this.depth--;
    return out;
  }

  /* One argument: a group, or a single sign. */
  argument() {
    const token = this.next();
    if (token === undefined || token === "}") { this.at--; return math("mrow", {}); }
    if (/^\d./.test(token)) { /* of 12, the 1 */
      this.tokens[--this.at] = token.slice(1);
      return math("mn", {}, token[0]);
    }
    return this.atom(token);
  }

  scripts(base) {
    let under = null, over = null;
    for (;;) {
      if (this.skip("_")) under = this.argument();
      else if (this.skip("^")) over = this.argument();
      else if (this.skip("'")) over = this.primes();
      else if (this.peek() === "\\limits" || this.peek() === "\\nolimits") this.at++;
      else break;
    }
    if (!under && !over) return base;
    const [both, low, high] = base.limits ? ["munderover", "munder", "mover"] :
      ["msubsup", "msub", "msup"];
    if (under && over) return math(both, {}, base, under, over);
    return under ? math(low, {}, base, under) : math(high, {}, base, over);
  }

  primes() {
    let sign = "′";
    while (this.skip("'")) sign += "′";
    return operator(sign);
  }

  atom(token) {
    if (token === "{") {
      const inside = this.row((t) => t === "}");
      this.skip("}");
      return math("mrow", {}, ...inside);
    }
    if (token[0] === "\\") return this.command(token.slice(1));
    if (/^\d/.test(token)) return math("mn", {}, token);
    if (token === "~") return math("mspace", { width: "0.25em" });
    if (/^\p{L}$/u.test(token)) return math("mi", {}, token);
    if (token === "}") return math("mrow", {}); /* it closes nothing */
    if (token === "^" || token === "_") { this.at--; return math("mrow", {}); }
    return operator(token === "-" ? "−" : token === "*" ? "∗" : token);
  }

  command(name) {
    if (name in LETTERS) return math("mi", /^[Α-Ω]$/.test(LETTERS[name]) ? { mathvariant: "normal" } : {},
      LETTERS[name]);
    if (name in OPERATORS) return operator(OPERATORS[name]);
    if (name in SPACES) return math("mspace", { width: SPACES[name] });
    if (name in INTEGRALS) return math("mo", { largeop: "true" }, INTEGRALS[name]);
    if (name in BIG) return this.big(BIG[name]);
    if (FUNCTIONS.has(name)) return math("mi", { mathvariant: "normal" }, name);
    if (name in ACCENTS) return math("mover", { accent: "true" }, this.argument(),
      operator(ACCENTS[name], { stretchy: String(/^wide|^over/.test(name)) }));
    if (name in ALPHABETS) return math("mi", { mathvariant: "normal" }, inAlphabet(name, this.raw()));
    const known = Object.hasOwn(COMMANDS, name) && COMMANDS[name];
    return known ? known(this, name) : math("mtext", { class: "unknown" }, `\\${name}`);
  }

  big(sign) {
    const e = math("mo", { movablelimits: "true", ...(sign.length === 1 ? { largeop: "true" } : {}) }, sign);
    e.limits = true;
    return e;
  }

  /* Cells between & and rows between \\, until a token that `ends`. */
  cells(ends) {
    const rows = [[]], stops = (t) => t === "&" || t === "\\\\" || ends(t);
    for (;;) {
      rows[rows.length - 1].push(this.row(stops));
      const token = this.peek();
      if (token === undefined || ends(token)) break;
      this.at++;
      if (token === "&") continue;
      if (this.tokens[this.at] === "[") while (this.at < this.tokens.length && this.next() !== "]");
      rows.push([]);
    }
    const last = rows[rows.length - 1];
    if (rows.length > 1 && last.length === 1 && !last[0].length) rows.pop();
    return rows;
  }

  environment() {
    const name = this.raw();
    if (!TABLES.has(name)) return math("mtext", { class: "unknown" }, `\\begin{${name}}`);
    if (name === "array" || name.startsWith("alignat")) this.raw();
    const rows = this.cells((t) => t === "\\end");
    if (this.skip("\\end")) this.raw();
    const table = tableOf(rows, ALIGNED.has(name) ? "aligned" : /cases/.test(name) ? "cases" : "");
    const high = 1.1 * rows.length;
    if (name === "cases") return math("mrow", {}, fence("{", high), table);
    if (name === "rcases") return math("mrow", {}, table, fence("}", high));
    const pair = [...(FENCES[name] || "")];
    return pair.length ? math("mrow", {}, fence(pair[0], high), table, fence(pair[1], high)) : table;
  }

  /* \left( ... \right): fences as high as what they hold. */
  delimiter() {
    const token = this.next() || ".";
    return fence(token[0] === "\\" ? OPERATORS[token.slice(1)] || token : token);
  }

  fenced() {
    const open = this.delimiter(), inside = this.row((t) => t === "\\right");
    const close = this.skip("\\right") ? this.delimiter() : fence(".");
    const tall = inside.some((e) => e.localName === "mfrac" || e.querySelector("mfrac, mtable, munderover"));
    if (tall) for (const e of [open, close]) e.style.setProperty("--high", 1.8);
    return math("mrow", {}, open, ...inside, close);
  }
}

function tableOf(rows, kind) {
  return math("mtable", { class: kind, displaystyle: String(kind === "aligned") }, ...rows.map((row) =>
    math("mtr", {}, ...row.map((cell) => math("mtd", {}, ...cell)))));
}

const fraction = (p) => math("mfrac", {}, p.argument(), p.argument());
const sized = (p) => operator(p.delimiter().textContent, { stretchy: "false", class: "sized" });
const plainText = (p) => math("mtext", {}, p.raw().replace(/\\([%&#$_{} ])/g, "$1"));
const nothing = () => math("mrow", {});
const braceOver = (p) => limited(math("mover", {}, p.argument(), operator("⏞", { stretchy: "true" })));
const braceUnder = (p) => limited(math("munder", {}, p.argument(), operator("⏟", { stretchy: "true" })));

function limited(e) {
  e.limits = true;
  return e;
}

function root(p) {
  if (!p.skip("[")) return math("msqrt", {}, p.argument());
  const degree = together(p.row((t) => t === "]"));
  p.skip("]");
  return math("mroot", {}, p.argument(), degree);
}

function stacked(p, name) {
  const small = p.argument(), base = p.argument();
  return name === "underset" ? math("munder", {}, base, small) : math("mover", {}, base, small);
}

const COMMANDS = {
  frac: fraction, dfrac: fraction, tfrac: fraction, cfrac: fraction, sqrt: root, text: plainText,
  textbf: plainText, textit: plainText, textrm: plainText, mbox: plainText, textsf: plainText,
  mathrm: (p) => math("mi", { mathvariant: "normal" }, p.raw()),
  operatorname: (p) => { p.skip("*"); return math("mi", { mathvariant: "normal" }, p.raw()); },
  mathit: (p) => p.argument(), binom: (p) => math("mrow", {}, fence("("),
    math("mfrac", { linethickness: "0" }, p.argument(), p.argument()), fence(")")),
  left: (p) => p.fenced(), right: nothing, begin: (p) => p.environment(), end: (p) => { p.raw(); return nothing(); },
  underline: (p) => math("mrow", { class: "underlined" }, p.argument()),
  overline: (p) => math("mrow", { class: "overlined" }, p.argument()),
  overbrace: braceOver, underbrace: braceUnder, overset: stacked, underset: stacked, stackrel: stacked,
  boxed: (p) => math("mrow", { class: "boxed" }, p.argument()),
  pmod: (p) => math("mrow", {}, math("mtext", {}, "\u2003(mod "), p.argument(), math("mtext", {}, ")")),
  bmod: () => operator("mod"), tag: (p) => math("mtext", {}, `\u2003(${p.raw()})`),
  not: (p) => operator(`${p.argument().textContent}\u0338`), label: (p) => { p.raw(); return nothing(); },
  displaystyle: nothing, textstyle: nothing, scriptstyle: nothing, limits: nothing, nolimits: nothing,
  nonumber: nothing, notag: nothing, hline: nothing, middle: (p) => p.delimiter(),
};
for (const name of ["big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr"])
  COMMANDS[name] = sized;

/* Browsers stretch fences only with a mathematical font; without one, the style sheet
 * stretches them by the height that is known here. */
function markMathFont() {
  const rows = tableOf([1, 2, 3, 4].map(() => [[math("mi", {}, "x")]]), ""), sign = fence("(");
  const probe = element("div", { class: "hidden" }, math("math", {}, math("mrow", {}, sign, rows)));
  document.body.append(probe);
  const stretches = sign.getBoundingClientRect().height > 0.7 * rows.getBoundingClientRect().height;
  probe.remove();
  document.documentElement.classList.toggle("no-math-font", !stretches);
}

/* A formula, or its text where it cannot be drawn. */
function latex(text, display) {
  const typed = () => element("code", {}, text);
  if (text.length > MATH_LONGEST) return typed();
  try {
    const rows = new Latex(text).cells(() => false);
    const body = rows.length === 1 && rows[0].length === 1 ? rows[0][0] : [tableOf(rows, "aligned")];
    const drawn = math("math", display ? { display: "block" } : {}, math("mrow", {}, ...body));
    drawn.setAttribute("aria-label", text);
    return drawn;
  } catch (e) {
    if (e instanceof RangeError) return typed();
    throw e;
  }
}
