# SPDX-License-Identifier: Apache-2.0
"""The dashboard's numbers, and its history over a reload."""

TILES = """Object.fromEntries([...document.querySelectorAll(".tile")].map((t) =>
    [t.querySelector(".name").textContent, t.innerText.replace(/\\s+/g, " ")]))"""


def test_tiles(p):
    p.eval("document.getElementById('tab-dash').click()")
    p.wait("document.querySelectorAll('.tile').length > 6")
    tiles = p.eval(TILES)
    for name, parts in (("KV cache", ("held", "12,000 evictable")), ("Errors", ("3", "5 bad requests", "6 refused", "1 not finite")),
                        ("Aborted", ("4 requests",)), ("Connections", ("7 open",)), ("Speculation", ("1.84", "tok/step")),
                        ("KV tiers", ("2 GB read", "2.34 MB written", "9 queued", "file tier off"))):
        for part in parts:
            assert part in tiles[name], (name, tiles[name])
    assert p.count(".plot:not([hidden])") == 10


def test_where_the_time_goes(p):
    p.wait("trail.length > 2 && Number.isFinite(trail[trail.length - 1].forward)", 30)
    shares = p.eval("(({forward, host, gaps}) => [forward, host, gaps])(trail[trail.length - 1])")
    assert all(abs(got - want) < 0.1 * want for got, want in zip(shares, (0.8, 0.1, 0.02))), shares


def test_history_survives_a_reload(p):
    p.wait("trail.length > 2", 30)
    first = p.eval("trail[0].t")
    p.open(p.url + "/?later#dashboard")
    p.wait("trail.length > 2")
    assert abs(p.eval("trail[0].t") - first) < 1e-3


def test_gaps_break_the_line(p):
    got = p.eval("""(() => { const was = trail.splice(0), out = [];
      for (const t of [100, 102, 400, 402]) addPoint({t, x: 1});
      out.push(trail.map((q) => q.x ?? 0).join(""));
      trail.length = 0;
      for (let t = 0; t < 3600; t += 2) addPoint({t, x: t});
      out.push(thinned(trail).length, thinned(thinned(trail)).length);
      trail.splice(0, trail.length, ...was);
      return out; })()""")
    assert got[0] == "11011" and 500 < got[1] == got[2] < 700, got


def test_spoilt_history_is_ignored(p):
    for kept in ("{", "{}", "[null, 1, {}]", '[{"t": 1}]', '[{"t": "x"}]', '[{"t": 1e12}]'):
        p.eval(f"localStorage.setItem('fathom-trail', {kept!r})")
        n = p.eval("(() => { const was = trail.splice(0); loadTrail(); const n = trail.length;"
                   " trail.splice(0, n, ...was); return n; })()")
        assert n == 0, (kept, n)


def test_a_server_without_speculation(p):
    assert p.eval("""(() => { const was = trail.map((q) => q.accepted);
      trail.forEach((q) => { q.accepted = NaN; }); drawDashboard();
      const hidden = document.querySelectorAll('.plot[hidden]').length, tile = [...document.querySelectorAll('.tile .name')]
        .some((e) => e.textContent === 'Speculation');
      trail.forEach((q, i) => { q.accepted = was[i]; }); drawDashboard();
      return hidden === 1 && !tile; })()""")
    p.eval("document.getElementById('tab-chat').click()")


TESTS = (test_tiles, test_where_the_time_goes, test_history_survives_a_reload, test_gaps_break_the_line, test_spoilt_history_is_ignored,
         test_a_server_without_speculation)
