#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package over the built library: python_package.py PROGRAM BUILD."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
BUILD = os.path.abspath(sys.argv[2])
TINY = os.path.join(ROOT, "models", "fathom-tiny")
os.environ["FATHOM_LIBRARY"] = os.path.join(BUILD, "libfathom.so")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.path.insert(0, os.path.join(ROOT, "python"))
sys.dont_write_bytecode = True
import fathom  # noqa: E402
from fathom import library as L  # noqa: E402


def test_structures_are_those_of_the_header(_):
    """Sizes and offsets, as the C compiler has them."""
    cc = shutil.which(os.environ.get("CC", "cc"))
    if not cc:
        return
    names = {L.Sampling: "fm_sampling", L.Prompt: "fm_prompt", L.Event: "fm_event", L.Facts: "fm_model_facts",
             L.Message: "fm_message", L.LogitBias: "fm_logit_bias", L.TopLogprob: "fm_top_logprob"}
    lines = [f'printf("%zu\\n", sizeof({c}));' + "".join(f'printf("%zu\\n", offsetof({c}, {f[0]}));' for f in p._fields_)
             for p, c in names.items()]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "x.c"), os.path.join(folder, "x")
        with open(source, "w") as f:
            f.write('#include <stdio.h>\n#include "fathom/fathom.h"\nint main(void) {' + "".join(lines) + "return 0; }\n")
        subprocess.run([cc, "-I", os.path.join(ROOT, "include"), source, "-o", program], check=True)
        found = [int(x) for x in subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()]
    import ctypes
    want = [x for p in names for x in [ctypes.sizeof(p)] + [getattr(p, f[0]).offset for f in p._fields_]]
    assert found == want, [(a, b) for a, b in zip(found, want) if a != b]


def test_generate(m):
    a = m.generate("Once upon a time", max_tokens=12, temperature=0)
    assert a.finish_reason == "length" and len(a.tokens) == 12 and a.text == m.detokenize(a.tokens), a
    assert a.text == m.generate(m.tokenize("Once upon a time", bos=True), max_tokens=12, temperature=0).text
    both = m.generate(["Once upon a time", "2 + 2 ="], max_tokens=12, temperature=0, logprobs=True)
    assert both[0].text == a.text and len(both[1].logprobs) == len(both[1].tokens) > 0 and max(both[1].logprobs) <= 0
    assert m.generate("x", seed=5, max_tokens=8).text == m.generate("x", seed=5, max_tokens=8).text
    first = a.text.split()[1]
    cut = m.generate("Once upon a time", max_tokens=12, temperature=0, stop=first)
    assert cut.finish_reason == "stop" and first not in cut.text, cut


def test_stream_and_cancel(m):
    pieces = list(m.stream("Once upon a time", max_tokens=12, temperature=0))
    assert [p.finish_reason for p in pieces][-1] == "length" and not any(p.finish_reason for p in pieces[:-1])
    assert "".join(p.text for p in pieces) == m.generate("Once upon a time", max_tokens=12, temperature=0).text
    stream = m.stream("x", max_tokens=1000, ignore_eos=True)
    next(stream)
    stream.close()  # the answer is cancelled, and the engine is idle soon
    assert len(m.generate("x", max_tokens=3, ignore_eos=True).tokens) == 3
    assert not L.lib.fm_engine_busy(m._handle)


def test_chat(m):
    talk = [{"role": "user", "content": "What is 2+3?"}]
    text, thinks = m.chat_prompt(talk)
    assert "What is 2+3?" in text and thinks
    a = m.chat(talk, max_tokens=40, temperature=0)
    assert a.text == "".join(p.text for p in m.chat_stream(talk, max_tokens=40, temperature=0))
    after = m.chat(talk, max_tokens=200, temperature=0, regex="\\s*[0-9]{3}").text
    assert re.search("</think>\\s*[0-9]{3}$", after), after


def test_structured(m):
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["a"],
              "additionalProperties": False}
    assert 1 <= m.generate("x", json_schema=schema, seed=1).json()["a"] <= 9

    class Model:  # as Pydantic's look
        @staticmethod
        def model_json_schema():
            return schema
    assert set(m.generate("x", json_schema=Model).json()) == {"a"}
    assert re.fullmatch("[ab]{6}", m.generate("x", regex="[ab]{6}").text)
    assert m.generate("x", ebnf='root ::= "yes" | "no"').text in ("yes", "no")


def test_text_and_tokens(m):
    text = "Gr\u00fc\u00dfe, 12 < 30 \u4e16"
    assert m.detokenize(m.tokenize(text)) == text and m.detokenize([]) == ""
    eos = m.facts["eos"]
    assert m.detokenize([eos]) == "" and m.detokenize([eos], keep_special=True) != ""
    assert m.facts["has_tokenizer"] == 1 and m.facts["kv_tokens"] == 8192


def test_threads(m):
    want = m.generate("Once upon a time", max_tokens=16, temperature=0).text
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda _: m.generate("Once upon a time", max_tokens=16, temperature=0).text, range(12)))
    assert set(got) == {want}


def test_failures(m):
    for call, word in ((lambda: fathom.Engine("/nowhere"), "nowhere"), (lambda: fathom.Engine(TINY, no_such=1), "no-such"),
                       (lambda: m.generate("x", regex="("), "group"), (lambda: m.generate([99999999]), "99999999")):
        try:
            call()
        except fathom.FathomError as e:
            assert word in str(e) and e.status < 0, e
        else:
            raise AssertionError(word)
    for call, kind in ((lambda: m.generate("x", no_such=1), TypeError), (lambda: m.generate("x", regex="a", ebnf="b"), ValueError)):
        try:
            call()
        except kind:
            continue
        raise AssertionError(kind)


def test_pip_install(_):
    """Into an environment of its own, without an index.  Debian's python3 alone has no pip: nothing to test then."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True)
        if made.returncode:
            print("   no venv here, pip is not tried")
            return
        copy = os.path.join(folder, "source")
        shutil.copytree(os.path.join(ROOT, "python"), copy)
        subprocess.run([os.path.join(folder, "bin", "pip"), "-q", "install", "--no-index", "--disable-pip-version-check", copy],
                       check=True)
        run = [os.path.join(folder, "bin", "python"), "-c", "import fathom; print(fathom.version(), fathom.__file__)"]
        out = subprocess.run(run, check=True, capture_output=True, text=True, cwd=folder).stdout.split()
        assert out[0] == fathom.version() and out[1].startswith(os.path.realpath(folder)), out


if __name__ == "__main__":
    reports = []
    fathom.on_progress(lambda what, done: reports.append(done))
    with fathom.Engine(TINY, max_total_tokens=8192) as model:
        assert reports and reports[-1] == 1
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(model)
                print("ok", name)
    try:
        model.generate("x")
    except fathom.FathomError as e:
        assert "the engine is closed" in str(e), e
    else:
        raise AssertionError("a closed engine answered")
