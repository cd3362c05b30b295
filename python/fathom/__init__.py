# SPDX-License-Identifier: Apache-2.0
"""Run DeepSeek models from Python, over libfathom.

    import fathom
    with fathom.Engine("models/fathom-tiny") as model:
        print(model.generate("Once upon a time", max_tokens=32, temperature=0).text)
        for piece in model.chat_stream([{"role": "user", "content": "Hello"}]):
            print(piece.text, end="")
        print(model.generate("A person:", json_schema={"type": "object"}).json())
"""
from .engine import Answer, Engine, Piece
from .library import FathomError, LogFn, ProgressFn, lib as _lib

__all__ = ["Answer", "Engine", "FathomError", "Piece", "on_log", "on_progress", "version"]
_kept = {}  # callbacks, which must outlive the calls that set them


def version():
    """Of the library that runs."""
    return _lib.fm_version().decode()


def on_log(function):
    """function(level, room, line) gets the library's log lines; None: stderr again."""
    call = LogFn(lambda _, level, room, line: function(level, room.decode(), line.decode())) if function else LogFn()
    _lib.fm_on_log(call, None)
    _kept["log"] = call


def on_progress(function):
    """function(what, done), done from 0 to 1, while an engine loads; None: no reports."""
    call = ProgressFn(lambda _, what, done: function(what.decode(), done)) if function else ProgressFn()
    _lib.fm_on_progress(call, None)
    _kept["progress"] = call
