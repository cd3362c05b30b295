#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Stock packages in virtual environments of their own.
venv_lib.py PROGRAM DIRECTORY makes the one that most clients share: they need much of the same."""
import os
import subprocess
import sys
import time
import venv

CLIENTS = ("openai", "anthropic", "langchain-openai==1.7.3")


def skip(why):
    print("skipped: no package index:", why)
    sys.exit(77)


def refused_lately(note):
    """Why the last try failed, if that was a moment ago: several tests need the same."""
    if os.path.exists(note) and time.time() - os.path.getmtime(note) < 600:
        with open(note, encoding="utf-8") as f:
            return f.read()
    return None


def environment(where, *packages):
    """A Python that has the packages; ends with 77, skipped, where they cannot be had."""
    python, note = os.path.join(where, "bin", "python"), where + ".why"
    if os.path.exists(os.path.join(where, "complete")):
        return python
    why = refused_lately(note)
    if why:
        skip(why)
    try:
        venv.create(where, with_pip=True, clear=True)
        # Only what is imported gets compiled, by run_inside: a fraction of all.
        got = subprocess.run([python, "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check", *packages],
                             capture_output=True, text=True, timeout=200, check=False)
        why = "".join(got.stderr.strip().splitlines()[-1:]) or "pip failed" if got.returncode else None
    except (OSError, subprocess.SubprocessError) as e:
        why = str(e)
    if why is not None:
        with open(note, "w", encoding="utf-8") as f:
            f.write(why)
        skip(why)
    open(os.path.join(where, "complete"), "w", encoding="ascii").close()
    return python


def run_inside(script, *packages):
    """Runs `script PROGRAM DIRECTORY` again with the packages at hand."""
    if len(sys.argv) < 4:
        python = environment(sys.argv[2], *packages)
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(sys.argv[2], "compiled")
        os.execv(python, [python, "-s", os.path.abspath(script), sys.argv[1], sys.argv[2], "inside"])


if __name__ == "__main__":
    environment(sys.argv[2], *CLIENTS)
