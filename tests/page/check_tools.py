# SPDX-License-Identifier: Apache-2.0
"""Tools and structured output, typed as JSON."""
import json

WEATHER = {"name": "weather", "description": "The weather of a city",
           "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


def test_a_call_is_a_card(p):
    p.new_chat()
    p.fill("tools", json.dumps([WEATHER]))
    p.ask("What is the weather?")
    p.finished()
    assert p.asked()[-1]["body"]["tools"] == [{"type": "function", "function": WEATHER}]
    assert p.count(".call") == 1 and p.last(".call b") == "weather"
    assert '"city": "Nome <b>"' in p.last(".call pre"), "as text, not as markup"


def test_its_result_goes_back(p):
    p.eval("document.querySelector('.call textarea').value = '{\"degrees\": -3, \"of\": \"earlier\"}'")
    p.shot("chat-tool")
    p.press("Send result", ".results")
    p.finished()
    sent = p.asked()[-1]["body"]["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "tool"], sent
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "call_1"
    assert json.loads(sent[1]["tool_calls"][0]["function"]["arguments"]) == {"city": "Nome <b>"}
    assert json.loads(sent[2]["content"])["degrees"] == -3
    assert p.count(".call textarea") == 0 and p.count(".call .result") == 1
    p.shot("chat-tool-result")


def test_a_schema_is_sent(p):
    p.new_chat()
    p.fill("tools", "")
    p.fill("schema", '{"type": "object"}')
    p.ask("What was said earlier?")
    p.finished()
    sent = p.asked()[-1]["body"]["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"strict": True, "name": "answer", "schema": {"type": "object"}}}


def test_what_is_no_json_is_said(p):
    n = len(p.asked())
    p.fill("schema", '{"type": ')
    assert p.eval("document.getElementById('schema').getAttribute('aria-invalid')") == "true"
    assert "JSON schema:" in p.eval("document.getElementById('schema-error').textContent")
    p.ask("Hello there")
    p.finished()
    assert "JSON schema:" in p.last(".turn .error") and len(p.asked()) == n, "nothing is sent"
    p.fill("tools", '[{"no": "name"}]')
    assert "name" in p.eval("document.getElementById('tools-error').textContent")
    for box in ("tools", "schema"):
        p.fill(box, "")
        assert p.eval(f"document.getElementById('{box}').getAttribute('aria-invalid')") == "false"
    p.new_chat()


TESTS = (test_a_call_is_a_card, test_its_result_goes_back, test_a_schema_is_sent, test_what_is_no_json_is_said)
