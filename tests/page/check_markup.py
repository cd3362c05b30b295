# SPDX-License-Identifier: Apache-2.0
"""Markdown, code and formulas, drawn by the page's own functions; hostile input, too."""
import json

DRAW = "const d = document.createElement('div'); d.append(...markdown(%s)); document.body.append(d);"


def drawn(p, text, script):
    """What `script`, with the drawn text in `d`, returns."""
    return p.eval(f"(() => {{ {DRAW % json.dumps(text)} try {{ return {script}; }} finally {{ d.remove(); }} }})()")


def html(p, text):
    return drawn(p, text, "d.innerHTML")


def same(got, want):
    assert got == want, f"\n got {got}\nwant {want}"


def test_inline(p):
    link = '<a href="%s" target="_blank" rel="noopener noreferrer">%s</a>'
    for text, want in (
            ("~~a~~ _b_ __c__ ***d***", "<del>a</del> <em>b</em> <strong>c</strong> <strong><em>d</em></strong>"),
            ("snake_case_name 3 * 4 * 5 2**3", "snake_case_name 3 * 4 * 5 2**3"),
            (r"\*a\* `\*b\*`", r"*a* <code>\*b\*</code>"),
            ("[a **b**](https://x.y/z)", link % ("https://x.y/z", "a <strong>b</strong>")),
            ("see https://x.y/z.", "see " + link % ("https://x.y/z", "https://x.y/z") + "."),
            ("![pic](https://x.y/z.png)", link % ("https://x.y/z.png", "pic")),
            ("it costs $5 and $6, or $7-$8", "it costs $5 and $6, or $7-$8"),
            ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
            ("[x](data:text/html,a)", "[x](data:text/html,a)")):
        same(html(p, text), f"<p>{want}</p>")


def test_blocks(p):
    box = '<input type="checkbox" disabled="" aria-label="%s">'
    for text, want in (
            ("- [x] a\n- [ ] b", f'<ul><li class="task">{box % "done"}a</li><li class="task">{box % "open"}b</li></ul>'),
            ("1. a\n   - b\n     - c\n2. d", '<ol start="1"><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li>d</li></ol>'),
            ("- a\n\n  b\n- c", "<ul><li>a<p>b</p></li><li>c</li></ul>"),
            ("- a\n1. b", '<ul><li>a</li></ul><ol start="1"><li>b</li></ol>'),
            ("> a\n> > b\n> - c", "<blockquote><p>a</p><blockquote><p>b</p></blockquote><ul><li>c</li></ul></blockquote>"),
            ("a  \nb\\\nc", "<p>a<br>b<br>c</p>"), ("a\n***\nb", "<p>a</p><hr><p>b</p>")):
        same(html(p, text), want)
    cells = "[...d.querySelectorAll('th, td')].map((c) => c.className + ':' + c.textContent).join()"
    same(drawn(p, "|a|b|c|\n|-|:-:|-:|\n|`x|y`||3|\n|p\\|q|**r**|$z$|", cells),
         ":a,center:b,right:c,:x|y,center:,right:3,:p|q,center:r,right:z")


def test_code_is_coloured(p):
    spans = "[...d.querySelectorAll('.code span')].map((s) => s.className + ':' + s.textContent).join(' ')"
    same(drawn(p, "```c\nint x = 3; // if\nf(\"a // b\");\n```", spans),
         'keyword:int number:3 comment:// if string:"a // b"')
    same(drawn(p, "```py\ndef f(): # x\n  '#'\n```", spans), "keyword:def comment:# x string:'#'")
    same(drawn(p, "```sql\nSELECT a -- b\n```", spans), "keyword:SELECT comment:-- b")
    same(drawn(p, "```none\nint x\n```", spans), "")
    source = "```js\n" + "a = `</script><b>`; /* unclosed\n" * 3 + "```"
    same(drawn(p, source, "d.querySelector('code').textContent"), source[6:-4])


def test_formulas(p):
    shape = """(() => { const of = (e) => e.children.length ? e.localName + '(' + [...e.children].map(of) + ')' :
        e.localName === 'mrow' ? '' : e.textContent; return of(d.querySelector('math > mrow')); })()"""
    for text, want in (
            (r"\frac{a}{b}", "mrow(mfrac(mrow(a),mrow(b)))"), (r"\frac12", "mrow(mfrac(1,2))"),
            ("x_i^2", "mrow(msubsup(x,i,2))"), ("x^10", "mrow(msup(x,1),0)"), ("f''", "mrow(msup(f,′′))"),
            (r"\sqrt[3]{x}", "mrow(mroot(mrow(x),3))"), (r"\alpha\le\Omega", "mrow(α,≤,Ω)"),
            (r"\sum_{i=1}^n i", "mrow(munderover(∑,mrow(i,=,1),n),i)"), (r"\int_0^1", "mrow(msubsup(∫,0,1))"),
            (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
             "mrow(mrow((,mtable(mtr(mtd(1),mtd(2)),mtr(mtd(3),mtd(4))),)))"),
            (r"\left(\frac ab\right]", "mrow(mrow((,mfrac(a,b),]))"), (r"\mathbb{R}", "mrow(ℝ)"),
            (r"a\\b&c", "mrow(mtable(mtr(mtd(a)),mtr(mtd(b),mtd(c))))"), (r"\text{if } x", "mrow(if ,x)"),
            (r"\unheard{x}", r"mrow(\unheard,mrow(x))"), (r"\constructor", r"mrow(\constructor)"),
            (r"{a", "mrow(mrow(a))"), ("a}b", "mrow(a,,b)")):
        same(drawn(p, f"${text}$", shape), want)
    for text in ("$x$", r"\(x\)"):
        assert not drawn(p, text, "d.querySelector('math').hasAttribute('display')"), text
    for text in ("$$x$$", r"\[x\]", "$$\nx\n$$", "\\[\nx\n\\]", "\\begin{align}\nx\n\\end{align}"):
        assert drawn(p, text, "d.querySelectorAll('math[display=block]').length") == 1, text
    same(drawn(p, "$$\nx +", "d.textContent"), "$$\nx +")


def test_fences_are_as_high_as_what_they_hold(p):
    """With a mathematical font by the browser, without one by the style sheet."""
    for text in (r"\begin{pmatrix}1\\2\\3\end{pmatrix}", r"\begin{cases}1\\2\\3\end{cases}", r"\left(\frac{a}{b}\right)"):
        share = drawn(p, f"$${text}$$", """(() => { const high = (e) => e.getBoundingClientRect().height;
            return high(d.querySelector('mo.fence')) / high(d.querySelector('mtable, mfrac')); })()""")
        assert 0.7 < share < 1.7, (text, share)


HOSTILE = ("<script>window.hit = 1</script>", "<img src=x onerror='window.hit = 1'>", "[a](javascript:window.hit=1)",
           "[a](https://x\" onmouseover=\"window.hit=1)", "$\\href{javascript:window.hit=1}{x}$",
           "$\\text{<img src=x onerror=window.hit=1>}$", "```html\n<script>window.hit = 1</script>\n```",
           "```\"><script>window.hit=1</script>\n```", "| <img src=x onerror=window.hit=1> |\n|---|\n",
           "$\\class{x}{<svg onload=window.hit=1>}$", "<https://x.y/\"onclick=window.hit=1>",
           "![x](javascript:window.hit=1)", "$\\__proto__ \\hasOwnProperty \\toString$", "<math><mi xlink:href='javascript:1'>")
LONG = (">" * 5000, "- " * 5000, "{" * 5000, "$" + "{" * 5000 + "$", "$" + "\\frac" * 1500 + "$", "*" * 9999, "`" * 9999,
        "[" * 9999, "$" * 9999, "_a" * 9999, "|" * 9999 + "\n" + "|-" * 5000, "\\(" * 5000, "~~a" * 5000, "**a" * 5000,
        "$" + "\\left(" * 1200 + "$", "$" + "x^" * 3000 + "$", "1. a\n" * 3000, "\n".join(" " * i + "- a" for i in range(400)))
SAFE = """[...d.querySelectorAll('*')].every((e) => !/^(script|img|iframe|object|embed|style|form|svg|link)$/.test(e.localName) &&
    [...e.attributes].every((a) => !/^on/.test(a.name) && (!/href|src/.test(a.name) || /^(https?:|mailto:)/.test(a.value))))"""


def test_hostile_text_stays_text(p):
    for text in HOSTILE:
        assert drawn(p, text, SAFE), text
    assert p.eval("window.hit === undefined")


def test_long_and_deep_text_ends_soon(p):
    for text in LONG:
        ms = drawn(p, text, "(() => { const t = performance.now(); markdown(%s); return performance.now() - t; })()"
                   % json.dumps(text))
        assert ms < 3000, (text[:20], ms)


def test_random_text_is_safe_and_whole(p):
    """Pieces of markup in any order: no exception, nothing active; each beginning, as it streams, too."""
    bad = p.eval("""(() => { let x = 12345; const random = (n) => (x = (x * 1103515245 + 12345) % 2147483648) % n;
      const pieces = ["**", "*", "_", "`", "```", "\\n", "\\n\\n", "$", "$$", "\\\\(", "\\\\)", "\\\\[", "\\\\]", "{", "}", "^", "_",
        "\\\\frac", "\\\\begin{matrix}", "\\\\end{matrix}", "&", "\\\\\\\\", "\\\\left", "\\\\right", "|", "|-|", "- ", "1. ", "> ", "  ",
        "# ", "[", "](", ")", "https://a.b", "javascript:x", "<b onclick=x>", "word", "~~", "\\\\sqrt[", "]", "'", "\\\\", "\\u0000"];
      for (let i = 0; i < 3000; i++) {
        let text = "";
        for (let n = random(24); n >= 0; n--) text += pieces[random(pieces.length)];
        const d = document.createElement("div");
        try { d.append(...markdown(text)); } catch (e) { return text + ": " + e.stack; }
        if (!(SAFE)) return "active: " + text;
      }
      return ""; })()""".replace("SAFE", SAFE))
    assert not bad, bad


TESTS = (test_inline, test_blocks, test_code_is_coloured, test_formulas, test_fences_are_as_high_as_what_they_hold,
         test_hostile_text_stays_text, test_long_and_deep_text_ends_soon,
         test_random_text_is_safe_and_whole)
