#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""/start_profile and /stop_profile: a trace of what ran in between, in the directory the server was given."""
import json
import os
import subprocess
import tempfile
import time

from serve_lib import FATHOM, Server, run_all, same

ASK = {"text": "Hello", "sampling_params": {"max_new_tokens": 8, "temperature": 0, "ignore_eos": True}}


def explained(path):
    return json.loads(subprocess.run([FATHOM, "trace", path, "--json"], check=True, capture_output=True).stdout)


def count(trace, kind, name):
    return sum(k["count"] for k in trace["keys"] if (k["class"], k["name"]) == (kind, name))


def test_what_ran_in_between():
    with tempfile.TemporaryDirectory() as folder, Server("--profile-dir", folder) as s:
        same(s.ask("POST", "/generate", ASK)[0], 200)
        same(s.ask("POST", "/stop_profile")[0], 400)
        status, _, text = s.ask("POST", "/start_profile")
        same(status, 200)
        first, path = text.decode().splitlines()
        same(first, "Start profiling.")
        same(s.ask("POST", "/start_profile")[0], 400)
        same(s.ask("POST", "/generate", ASK)[0], 200)
        same(s.ask("POST", "/generate", ASK)[0], 200)
        same(s.ask("POST", "/stop_profile")[:1], (200,))
        same(s.ask("POST", "/generate", ASK)[0], 200)
        same(os.listdir(folder), [os.path.basename(path)])
        trace = explained(path)
        same(count(trace, "task", "decode"), 2)
        same(sum(k["rows"] for k in trace["keys"] if k["name"] == "head"), 16)


def test_a_number_of_steps():
    with tempfile.TemporaryDirectory() as folder, Server("--profile-dir", folder) as s:
        same(s.ask("POST", "/start_profile", {"num_steps": 3, "output_dir": folder})[0], 200)
        same(s.ask("POST", "/generate", ASK)[0], 200)
        time.sleep(0.1)
        same(s.ask("POST", "/stop_profile")[0], 400)
        (name,) = os.listdir(folder)
        same(count(explained(os.path.join(folder, name)), "phase", "run"), 3)


def test_a_client_does_not_choose_the_place():
    with tempfile.TemporaryDirectory() as folder, Server("--profile-dir", folder) as s:
        status, _, text = s.ask("POST", "/start_profile", {"output_dir": "/"})
        same(status, 400)
        assert b"--profile-dir" in text, text
        same(s.ask("POST", "/start_profile", "[1]")[0], 400)
        same(s.ask("POST", "/start_profile", {"num_steps": -1})[0], 400)
        same(os.listdir(folder), [])


if __name__ == "__main__":
    run_all(globals())
