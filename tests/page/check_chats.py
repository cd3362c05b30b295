# SPDX-License-Identifier: Apache-2.0
"""The list of chats: found, renamed, deleted, carried to another browser; keys and fingers."""
import json
import time

CTRL = 2
TITLES = "[...document.querySelectorAll('#chat-list .open')].map((b) => b.textContent)"


def test_chats_are_listed(p):
    p.eval("localStorage.clear(), newChat(), showChatPanel(true)")
    for text in ("What about apples earlier?", "What about pears earlier?"):
        p.new_chat()
        p.ask(text)
        p.finished()
    assert p.eval(TITLES) == ["What about pears earlier?", "What about apples earlier?"], p.eval(TITLES)
    p.eval("document.querySelectorAll('#chat-list .open')[1].click()")
    assert "apples" in p.last(".turn.user .text") and "apples" in p.last("#chat-list [aria-current]")
    p.shot("chat-list")


def test_search(p):
    p.fill("chat-search", "user: what about PEARS")  # in the answer, not in the title
    assert p.eval(TITLES) == ["What about pears earlier?"]
    p.fill("chat-search", "bananas")
    assert p.eval(TITLES) == [] and not p.eval("document.getElementById('chats-none').hidden")
    p.fill("chat-search", "")


def test_rename(p):
    p.eval("document.querySelector('#chat-list .icon').click()")
    p.eval("document.querySelector('#chat-list input').value = '<b>Fruit</b>'")
    p.key("Enter")
    assert "<b>Fruit</b>" in p.eval(TITLES) and p.count("#chat-list b") == 0
    p.ask("And plums earlier?")
    p.finished()
    assert "<b>Fruit</b>" in p.eval(TITLES), "a title that was given stays"


def test_export_and_import(p):
    text = p.eval("exportChats()")
    kept = json.loads(text)["chats"]
    assert len(kept) == 2
    p.eval("localStorage.clear(), newChat()")
    assert p.eval(TITLES) == []
    assert p.eval(f"importChats({json.dumps(text)})") == 2
    p.eval("showChats()")
    assert sorted(p.eval(TITLES)) == sorted(c["title"] for c in kept)
    p.eval("[...document.querySelectorAll('#chat-list .open')].find((b) => b.textContent.includes('Fruit')).click()")
    assert "## You\n\nWhat about pears" in p.eval("chatAsMarkdown(tree.path())")


def test_spoilt_files_are_refused(p):
    turn = {"id": 1, "parent": 0, "role": "user", "content": "x"}
    n = p.eval("keptChats().length")
    for bad in ("", "[]", "{}", "null", '{"format": "other", "chats": []}',
                *(json.dumps({"format": "fathom-chats", "chats": [{"turns": [t]}]}) for t in (
                    None, {**turn, "role": "system"}, {**turn, "content": {}}, {**turn, "id": "1"}, {**turn, "calls": [None]}))):
        said = p.eval(f"(() => {{ try {{ importChats({json.dumps(bad)}); return 'taken'; }} catch (e) {{ return e.message; }} }})()")
        assert "cannot be imported" in said, (bad, said)
    assert p.eval("keptChats().length") == n
    orphan = {"format": "fathom-chats", "chats": [{"turns": [{**turn, "parent": 9}, turn], "chosen": {"0": 7, "x": 1}}]}
    assert p.eval(f"importChats({json.dumps(json.dumps(orphan))})") == 1, "what hangs on nothing is left out"


def test_delete_asks_first(p):
    n = p.eval("showChats(), keptChats().length")
    p.eval("document.querySelector('#chat-list li .icon:last-child').click()")
    assert p.eval("keptChats().length") == n
    p.eval("document.querySelector('#chat-list [data-sure]').click()")
    assert p.eval("keptChats().length") == n - 1


def test_keys(p):
    p.eval("showChatPanel(false), document.getElementById('prompt').focus()")
    p.call("Input.dispatchKeyEvent", type="keyDown", key="k", code="KeyK", windowsVirtualKeyCode=75, modifiers=CTRL)
    assert p.eval("document.activeElement.id") == "chat-search"
    p.key("ArrowDown")
    assert p.eval("document.activeElement.className") == "open"
    p.key("Escape")
    assert p.eval("document.activeElement.id") == "prompt"
    p.new_chat()
    p.ask("first words earlier")
    p.finished()
    p.key("ArrowUp")
    assert p.eval("document.activeElement.value") == "first words earlier"
    p.key("Escape")
    assert p.count(".edit") == 0


SMALL = """[...document.querySelectorAll("button, input, select, textarea, summary")].filter((e) => e.checkVisibility())
    .map((e) => [e.id || e.className || e.textContent, e.getBoundingClientRect()])
    .filter(([, r]) => r.width && (r.width < 43.9 || r.height < 43.9)).map(([n, r]) => `${n} ${r.width}x${r.height}`)"""
NAMELESS = """[...document.querySelectorAll("button, input, select, textarea, [role=meter], aside, article")].filter((e) =>
    !(e.textContent.trim() || e.ariaLabel || (e.labels && e.labels.length) || e.getAttribute("aria-labelledby")))
    .map((e) => e.outerHTML.slice(0, 80))"""


def test_fingers_and_names(p):
    p.size(390, 844, phone=True)
    time.sleep(0.3)
    for show in ("showChatPanel(false)", "showChatPanel(true)", "showChatPanel(false), showPanel(true)"):
        p.eval(show)
        assert p.eval(SMALL) == [], p.eval(SMALL)
        assert p.eval("document.documentElement.scrollWidth <= innerWidth"), show
        p.shot("phone-" + str(len(show)))
    p.eval("showPanel(false)")
    assert p.eval(NAMELESS) == [], p.eval(NAMELESS)
    p.size(1280, 860)
    p.eval("showPanel(true)")
    p.new_chat()


TESTS = (test_chats_are_listed, test_search, test_rename, test_export_and_import, test_spoilt_files_are_refused,
         test_delete_asks_first, test_keys, test_fingers_and_names)
