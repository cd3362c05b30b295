#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The job scripts and the unit that start routers, with stand-ins for the launchers of Slurm and PBS: a request
through the router of each is answered, and SIGTERM ends all of it."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from serve_lib import ENV, FATHOM, HERE, run_all, same

ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
STANDINS = {
    "scontrol": "echo 127.0.0.1",
    "srun": 'while [ "$1" != "$FATHOM" ]; do shift; done; exec "$@"',
    "pbsdsh": 'while [ "$1" != "--" ]; do shift; done; shift; exec "$@"',
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_answer(port):
    end = time.time() + 60
    while time.time() < end:
        try:
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            c.request("POST", "/generate", json.dumps({"text": "Hello", "sampling_params": {"max_new_tokens": 4, "ignore_eos": True}}))
            reply = c.getresponse()
            if reply.status == 200:
                return json.loads(reply.read())
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError("nothing answers")


def run_script(script, work):
    port, worker = free_port(), free_port()
    with open(os.path.join(work, "nodes"), "w", encoding="ascii") as f:
        f.write("127.0.0.1\n")
    env = dict(ENV, PATH=f"{work}:{os.environ['PATH']}", FATHOM=os.path.abspath(FATHOM), MODEL=os.path.join(ROOT, "models", "fathom-tiny"),
               PORT=str(port), WORKER_PORT=str(worker), PBS_NODEFILE=os.path.join(work, "nodes"), SLURM_JOB_NODELIST="n[0]")
    p = subprocess.Popen(["bash", os.path.join(ROOT, "contrib", script)], env=env, cwd=work, start_new_session=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        same(wait_answer(port)["meta_info"]["completion_tokens"], 4)
        os.killpg(p.pid, signal.SIGTERM)
        same(p.wait(30) in (0, 143, -15), True)
    finally:
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.communicate()


def test_job_scripts():
    with tempfile.TemporaryDirectory() as work:
        for name, line in STANDINS.items():
            with open(os.path.join(work, name), "w", encoding="ascii") as f:
                f.write(f"#!/bin/bash\n{line}\n")
            os.chmod(f.name, 0o755)
        for script in ("slurm/route-replicas.sbatch", "pbs/route-replicas.pbs"):
            run_script(script, work)


def test_pbs_starts_a_server_on_every_host():
    """Also where one name is the beginning of another: pbsdsh counts the lines of the node file."""
    nodes = ["n10", "n1", "n1", "n100", "a.b", "axb"]
    with tempfile.TemporaryDirectory() as work:
        standins = {"pbsdsh": f'while [ "$1" != "-n" ]; do shift; done; echo "$2" >> {work}/started', "fathom": f'echo "$*" > {work}/routed'}
        for name, line in standins.items():
            with open(os.path.join(work, name), "w", encoding="ascii") as f:
                f.write(f"#!/bin/bash\n{line}\n")
            os.chmod(f.name, 0o755)
        with open(os.path.join(work, "nodes"), "w", encoding="ascii") as f:
            f.write("\n".join(nodes) + "\n")
        env = dict(ENV, PATH=f"{work}:{os.environ['PATH']}", FATHOM=os.path.join(work, "fathom"), MODEL="m", LC_ALL="C",
                   PBS_NODEFILE=f.name)
        subprocess.run(["bash", os.path.join(ROOT, "contrib", "pbs", "route-replicas.pbs")], env=env, cwd=work, check=True,
                       stdout=subprocess.DEVNULL)
        with open(os.path.join(work, "routed"), encoding="ascii") as f:
            routed = [word.split("/")[2].rsplit(":", 1)[0] for word in f.read().split() if word.startswith("http://")]
        same(sorted(routed), sorted(set(nodes)))
        started, end = [], time.time() + 10
        while len(started) < len(routed) and time.time() < end:  # they are started in the background
            time.sleep(0.02)
            if os.path.exists(os.path.join(work, "started")):
                with open(os.path.join(work, "started"), encoding="ascii") as f:
                    started = sorted(nodes[int(line)] for line in f)
        same(started, sorted(set(nodes)))


def test_unit():
    if not shutil.which("systemd-analyze"):
        print("  no systemd-analyze")
        return
    with tempfile.TemporaryDirectory() as work:
        for unit in ("fathom-route.service", "fathom.service"):
            with open(os.path.join(ROOT, "contrib", "systemd", unit), encoding="utf-8") as f:
                text = f.read().replace("/usr/local/bin/fathom", os.path.abspath(FATHOM))
            with open(os.path.join(work, unit), "w", encoding="utf-8") as f:
                f.write(text)
            got = subprocess.run(["systemd-analyze", "verify", "--man=no", f.name], capture_output=True, text=True, check=False)
            about_it = [line for line in got.stderr.splitlines() if unit in line]
            same((got.returncode, about_it), (0, []), unit)


if __name__ == "__main__":
    run_all(globals())
