# SPDX-License-Identifier: Apache-2.0
"""Turns: edited, deleted, in several versions; a conversation longer than the context."""


def roles(p):
    return [m["role"] for m in p.asked()[-1]["body"]["messages"]]


def test_another_answer_is_a_version(p):
    p.new_chat()
    p.ask("What was said earlier?")
    p.finished()
    p.press("Try again")
    p.finished()
    assert p.count(".turn.answer") == 1 and p.last(".versions b") == "2/2"
    assert roles(p) == ["user"], "the first version is not told to the model"
    p.press("Previous version")
    assert p.last(".versions b") == "1/2"


def test_an_edited_message_branches(p):
    p.ask("Hello there")
    p.finished()
    p.eval("document.querySelector('.turn.user .acts button').click()")
    p.eval("document.querySelector('.edit textarea').value = 'Edited: what was said earlier?'")
    p.eval("document.querySelector('.edit').requestSubmit()")
    p.finished()
    assert p.count(".turn") == 2 and p.answer().startswith("user: Edited"), p.answer()
    p.eval("document.querySelector('.turn.user .step').click()")
    assert p.count(".turn") == 4, "the other branch is still there, with its answers"


def test_a_turn_is_deleted(p):
    p.eval("[...document.querySelectorAll('.turn.user')][0].querySelectorAll('.acts button')[2].click()")
    assert p.count(".turn") == 2 and p.last(".turn.user .text") == "Hello there"
    p.press("Delete", ".turn.answer")
    assert p.count(".turn") == 1
    p.press("Delete", ".turn.user")
    assert p.last(".turn.user .text").startswith("Edited"), "the other version takes its place"


def test_the_gauge_counts(p):
    p.new_chat()
    p.ask("one two three four")
    p.finished()
    before = p.eval("Number(document.getElementById('gauge').getAttribute('aria-valuenow'))")
    assert before > 4, before
    p.fill("prompt", "word " * 4000)
    assert p.eval("Number(document.getElementById('gauge').getAttribute('aria-valuenow'))") > before + 1000
    assert "of 8,192 tokens" in p.eval("document.getElementById('gauge-text').textContent")
    p.fill("prompt", "")


def test_old_turns_make_room(p):
    """Four messages of 3000 words with 8192 tokens of context: the first are left out."""
    p.new_chat()
    for i in range(4):
        p.fill("prompt", f"message{i} " + "a " * 3000)
        p.eval("document.getElementById('send').click()")
        p.finished()
        assert not p.count(".turn .error"), p.last(".turn .error")
    sent = p.asked()[-1]["body"]["messages"]
    said = [m["content"].split()[0] for m in sent if m["role"] == "user"]
    assert said[-1] == "message3" and "message0" not in said, said
    assert sent[0]["role"] == "user", "it begins with a message, not with an answer"
    assert "left out" in p.last(".after span") and p.count(".cut") == 1
    p.shot("chat-left-out")


def test_an_overlong_message_is_no_dead_end(p):
    p.fill("prompt", "b " * 9000)
    p.eval("document.getElementById('send').click()")
    p.finished()
    said = p.last(".turn .error")
    assert "maximum context length" in said and "Edit message" in said and "Delete message" in said, said
    p.shot("chat-too-long")
    p.ask("What was said earlier?")
    p.finished()
    assert not p.eval("[...document.querySelectorAll('.turn.answer')].pop().querySelector('.error')"), "it goes on"
    assert not any(m["content"].startswith("b b") for m in p.asked()[-1]["body"]["messages"])
    p.eval("[...document.querySelectorAll('.turn .error button')].find((b) => b.textContent === 'Delete message').click()")
    assert p.count(".turn .error") == 0
    assert "What was said" in p.last(".turn.user .text"), "what came after stays"


def test_it_can_stop_instead(p):
    p.new_chat()
    p.fill("full", "stop")
    for i in range(3):
        p.fill("prompt", "c " * 3000)
        p.eval("document.getElementById('send').click()")
        p.finished()
    assert "maximum context length" in p.last(".turn .error")
    p.fill("full", "drop")
    p.press("Try again", ".error")
    p.finished()
    assert p.count(".turn .error") == 0
    p.new_chat()


def test_tree(p):
    """remove() never leaves a turn without its parent, whatever the order."""
    bad = p.eval("""(() => { let x = 7; const random = (n) => (x = (x * 1103515245 + 12345) % 2147483648) % n;
      for (let round = 0; round < 300; round++) {
        const t = new Tree();
        for (let i = 0; i < 12; i++) {
          const path = t.path(), at = path.length ? path[random(path.length)] : null;
          const role = at && at.role === "user" ? "assistant" : "user";
          if (random(4) === 0 && path.length) t.remove(path[random(path.length)]);
          else t.add(at ? at.id : 0, {role, content: "x"});
          const ids = new Set([0, ...t.turns.map((y) => y.id)]);
          if (t.turns.some((y) => !ids.has(y.parent))) return "an orphan";
          if (t.turns.length && !t.path().length) return "nothing is shown";
          if (Object.entries(t.chosen).some(([a, b]) => !ids.has(Number(a)) || !ids.has(b))) return "chosen, but gone";
        } }
      return ""; })()""")
    assert not bad, bad


TESTS = (test_another_answer_is_a_version, test_an_edited_message_branches, test_a_turn_is_deleted,
         test_the_gauge_counts, test_old_turns_make_room, test_an_overlong_message_is_no_dead_end,
         test_it_can_stop_instead, test_tree)
