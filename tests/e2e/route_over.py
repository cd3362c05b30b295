#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A test of the server, run against a router in front of two of them.
route_over.py PROGRAM SCRIPT [ARGUMENT...]"""
import os
import runpy
import sys

import route_lib
import serve_lib


def value_of(args, name):
    return args[args.index(name) + 1] if name in args else None


class Routed(route_lib.Router):
    def __init__(self, *args, **kinds):
        workers = [route_lib.Worker(*args, **kinds) for _ in range(2)]
        mine = []
        for name in ("--api-key", "--cors-origins", "--host"):
            if name in args:
                mine += [name, value_of(args, name)]
        if "--api-key" in args:
            mine += ["--worker-api-key", value_of(args, "--api-key")]
        if "--log-requests" in args:
            mine.append("--log-requests")
        self.key = value_of(args, "--api-key")
        super().__init__(workers, *mine)

    def get(self, path):
        status, _, data = self.ask("GET", path, headers={"Authorization": f"Bearer {self.key}"} if self.key else None)
        serve_lib.same(status, 200)
        return data

    def stop(self, want=0):
        super().stop(want)
        for w in self.workers:
            w.stop()

    def __exit__(self, kind, value, trace):
        super().__exit__(kind, value, trace)
        for w in self.workers if kind else ():
            w.process.kill()


# /metrics are the router's, its log has its own requests, /server_info is a worker's, and so is a path it does not know.
OWN = ("test_metrics", "test_request_ids_are_logged", "test_server_info_tells_what_was_chosen", "test_expect_continue",
       "test_time_to_first_token_leaves_out_the_upload")


def run_all(scope, *args):
    run_every({k: v for k, v in scope.items() if k not in OWN}, *args)


def execv(python, argv):
    """A test that runs itself again with another Python is run over the router there, too."""
    real_execv(python, [python, "-s", os.path.abspath(__file__), argv[3], os.path.basename(argv[2]), *argv[4:]])


if __name__ == "__main__":
    real_execv, os.execv = os.execv, execv
    serve_lib.Server = Routed
    run_every, serve_lib.run_all = serve_lib.run_all, run_all
    script = os.path.join(serve_lib.HERE, sys.argv[2])
    sys.argv = [script, sys.argv[1], *sys.argv[3:]]
    runpy.run_path(script, run_name="__main__")
