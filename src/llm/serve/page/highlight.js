/* SPDX-License-Identifier: Apache-2.0 */
/* Colours for code: comments, strings, numbers and keywords, which every language has. */
"use strict";

const HIGHLIGHT_LONGEST = 60000;
const words = (text) => text.trim().split(/\s+/);

/* How comments begin decides the family; the keywords of a family stand together. */
const FAMILIES = {
  slash: {
    names: words(`c h cpp c++ cc hpp cuda cu java js javascript jsx ts typescript tsx go rust rs swift kotlin kt
      cs csharp php scala dart css scss json jsonc zig`),
    comment: "//[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$)",
    keywords: words(`as async await auto bool break case catch char class const constexpr continue crate def
      default defer delete do double else enum export extends extern false final finally float fn for from func
      function go goto if impl implements import in inline instanceof int interface let long loop match mod move
      mut namespace new nil null nullptr of override package private protected pub public register restrict
      return self short signed sizeof static struct super switch template this throw trait true try type typedef
      typeof union unsafe unsigned use using var virtual void volatile where while yield uint8_t int32_t int64_t
      uint32_t uint64_t size_t string`),
  },
  hash: {
    names: words("py python sh bash zsh shell console rb ruby yaml yml toml r perl make makefile cmake dockerfile " +
      "nix elixir julia jl"),
    comment: "#[^\\n]*",
    keywords: words(`and as assert async await break case class continue def del do done elif else end esac except
      export False false fi finally for from function global if import in is lambda local match module nil None
      nonlocal not null or pass raise require return self set then True true try unless until while with yield
      echo`),
  },
  dash: {
    names: words("sql lua haskell hs ada"),
    comment: "--[^\\n]*",
    keywords: words(`add all alter and as asc begin between by case create default delete desc distinct drop else
      end exists false for foreign from function group having if in index inner insert into is join key left like
      limit local not null on or order outer primary references repeat return right select set table then true
      union unique update values view when where while with`),
    anyCase: true,
  },
  bang: {
    names: words("fortran f90 f95 f03"), comment: "![^\\n]*", anyCase: true,
    keywords: words(`allocatable allocate call character contains deallocate dimension do else end function if
      implicit in inout integer intent kind logical module none only out parameter print program real result
      return select subroutine then type use while`),
  },
};

const CODE_RULES = new Map();
for (const { names, comment, keywords, anyCase } of Object.values(FAMILIES)) {
  const string = '"(?:\\\\[\\s\\S]|[^"\\\\\\n])*"?|\'(?:\\\\[\\s\\S]|[^\'\\\\\\n])*\'?|`(?:\\\\[\\s\\S]|[^`\\\\])*`?';
  const rule = new RegExp(`(${comment})|("""[\\s\\S]*?(?:"""|$)|${string})|` +
    "\\b(0[xX][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\b|" +
    `(?<![\\w$-])(${keywords.join("|")})(?![\\w$-])`, anyCase ? "gi" : "g");
  for (const name of names) CODE_RULES.set(name, rule);
}
const CODE_CLASSES = [, "comment", "string", "number", "keyword"];

function highlightDiff(text) {
  return text.split(/(?<=\n)/).map((line) => {
    const kind = { "+": "added", "-": "removed", "@": "comment" }[line[0]];
    return kind ? element("span", { class: kind }, line) : line;
  });
}

/* Text nodes and spans; their text is `text`. */
function highlight(language, text) {
  const name = language.toLowerCase(), rule = CODE_RULES.get(name);
  if (text.length > HIGHLIGHT_LONGEST) return [text];
  if (name === "diff" || name === "patch") return highlightDiff(text);
  if (!rule) return [text];
  const out = [];
  let at = 0;
  for (const m of text.matchAll(rule)) {
    const kind = CODE_CLASSES.findIndex((k, i) => k && m[i] !== undefined);
    out.push(text.slice(at, m.index), element("span", { class: CODE_CLASSES[kind] }, m[0]));
    at = m.index + m[0].length;
  }
  out.push(text.slice(at));
  return out;
}
