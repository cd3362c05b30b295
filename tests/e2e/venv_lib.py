# SPDX-License-Identifier: Apache-2.0
"""Stock packages in virtual environments of their own."""
import os
import subprocess
import sys
import venv


def environment(where, *packages):
    """A Python that has the packages; ends with 77, skipped, where they cannot be had."""
    python = os.path.join(where, "bin", "python")
    if os.path.exists(os.path.join(where, "complete")):
        return python
    try:
        venv.create(where, with_pip=True, clear=True)
        got = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages],
                             capture_output=True, text=True, timeout=200, check=False)
        why = got.stderr.strip().splitlines()[-1:] if got.returncode else None
    except (OSError, subprocess.SubprocessError) as e:
        why = e
    if why is not None:
        print("skipped: no package index:", why)
        sys.exit(77)
    open(os.path.join(where, "complete"), "w", encoding="ascii").close()
    return python


def run_inside(script, *packages):
    """Runs `script PROGRAM DIRECTORY` again with the packages at hand; returns where they are."""
    if len(sys.argv) < 4:
        python = environment(sys.argv[2], *packages)
        os.execv(python, [python, "-B", os.path.abspath(script), sys.argv[1], sys.argv[2], "inside"])
