#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fathom plan against measurement on this machine: jobs that calibration has not seen.

    tools/plan/check.py build/fathom cpu --calibrate                   twelve jobs of r1-mini
    tools/plan/check.py build/fathom layouts --table calibrated.json   one job in six layouts of two ranks
    tools/plan/check.py build/fathom four --table calibrated.json      one job in ten layouts of four ranks
    tools/plan/check.py build/fathom crowd --table calibrated.json     two jobs in six layouts of three and four ranks
    tools/plan/check.py build-gpu/fathom h200 --calibrate --repeat 1   ten jobs of V2-Lite and R1

Jobs are measured in --repeat passes, each job once a pass, because a shared machine changes its speed by the minute.
With --table FILE all jobs are predicted before the first is measured; with --calibrate also by a table of costs that
each pass measures before its first job, starting from FILE.  Offline jobs are compared by total token throughput,
online ones (a server, requests that arrive one by one) by the mean time per token.  The error of a job is the median
over the passes of predicted / measured; by one table this is the error against the median measurement.  The spread is
the machine's own.  Have the machine to yourself: a calibration or measurement during which other programs, or other
guests of the host, took more than --others of the CPUs' time is made again, up to --tries times in all, and the least
disturbed one counts (Linux).

Layouts of one workload are compared in pairs.  Only those are counted whose measurements do not overlap: the order of
the others is not known.

In pieces: --json FILE keeps predictions and measurements, and the same command goes on where an earlier one
ended; --predict-only stops before the first measurement, --for S begins none after S seconds.

    tools/plan/check.py build/fathom cpu --calibrate --predict-only --json cpu.json
    tools/plan/check.py build/fathom cpu --calibrate --for 200 --json cpu.json          (until all is measured)
"""
import argparse
import json
import os
import random as chance
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

LITE = ["--model-path", "v2-lite"]
MINI = ["--model-path", "r1-mini"]


def r1(layers):
    """R1's first layers in FP8; 13 of them fit one card."""
    return ["--model-path", "r1", "--json-model-override-args", '{"num_hidden_layers":%d}' % layers]


def random(prompts, tokens_in, tokens_out, ratio=1):
    return ["--dataset-name", "random", "--num-prompts", prompts, "--random-input-len", tokens_in,
            "--random-output-len", tokens_out, "--random-range-ratio", ratio]


def shared(groups, prompts, common, own, tokens_out):
    return ["--dataset-name", "generated-shared-prefix", "--gsp-num-groups", groups, "--gsp-prompts-per-group", prompts,
            "--gsp-system-prompt-len", common, "--gsp-question-len", own, "--gsp-output-len", tokens_out]


def chat(prompts):
    return ["--dataset-name", "synthetic", "--num-prompts", prompts]


class Job:
    def __init__(self, name, model, flags, online=(), load=None):
        self.name, self.model = name, model
        self.flags = [str(f) for f in flags]    # of the engine and of the workload
        self.online = [str(f) for f in online]  # of the arrivals; empty: all at once
        self.load = load                        # sets the rate: that share of what is answered n at a time
        self.is_online = bool(online or load)

    def words(self):
        return self.model + self.flags + self.online

    def size(self, option):
        return int(self.flags[self.flags.index(option) + 1]) if option in self.flags else 1

    def tokens(self):
        """In and out, of a request of random()."""
        return self.size("--random-input-len") + self.size("--random-output-len")

    def n_rank(self):
        groups = "--enable-dp-attention" in self.flags
        return self.size("--tp-size") * self.size("--pp-size") * (1 if groups else self.size("--dp-size"))


def cpu_jobs():
    return [
        Job("offline-48", MINI, random(48, 128, 32)),
        Job("offline-96", MINI, random(96, 64, 48, 0.5)),
        Job("sharegpt-like", MINI, chat(12)),
        Job("long-1000", MINI, random(8, 1000, 48)),
        Job("long-3000", MINI, random(4, 3000, 16)),
        Job("prefix-4x8", MINI, shared(4, 8, 512, 64, 32)),
        Job("prefix-2x24", MINI, shared(2, 24, 256, 32, 24)),
        Job("online-light", MINI, random(20, 128, 24), load=(0.5, 1)),
        Job("online-busy", MINI, random(40, 64, 24), ["--max-concurrency", 16], load=(0.7, 16)),
        Job("tp2", MINI, random(64, 96, 24) + ["--tp-size", 2]),
        Job("pp2", MINI, random(64, 96, 24) + ["--pp-size", 2]),
        Job("dp2", MINI, random(64, 96, 24) + ["--dp-size", 2]),
    ]


def layout_jobs():
    groups = ["--tp-size", 2, "--dp-size", 2, "--enable-dp-attention"]
    layouts = {"tp2": ["--tp-size", 2], "pp2": ["--pp-size", 2], "dp2": ["--dp-size", 2],
               "tp2-ep2": ["--tp-size", 2, "--ep-size", 2], "tp2-dpa2": groups, "tp2-ep2-dpa2": groups + ["--ep-size", 2]}
    return [Job(name, MINI, random(48, 160, 32) + words) for name, words in layouts.items()]


def four_jobs():
    """More ranks than a small machine has cores: what they reach there says little, their order is what counts."""
    def sizes(tp=1, pp=1, dp=1, ep=1, groups=False):
        words = [w for name, n in (("tp", tp), ("pp", pp), ("dp", dp), ("ep", ep)) if n > 1 for w in ("--%s-size" % name, n)]
        return words + ["--enable-dp-attention"] * groups
    layouts = {"tp4": sizes(tp=4), "pp4": sizes(pp=4), "dp4": sizes(dp=4), "tp2-pp2": sizes(2, 2), "tp2-dp2": sizes(2, dp=2),
               "pp2-dp2": sizes(pp=2, dp=2), "tp4-ep4": sizes(4, ep=4), "tp4-dpa2": sizes(4, dp=2, groups=True),
               "tp4-dpa4-ep4": sizes(4, dp=4, ep=4, groups=True), "tp2-pp2-dpa2": sizes(2, 2, 2, groups=True)}
    return [Job(name, MINI, random(32, 96, 16) + words) for name, words in layouts.items()]


def crowd_jobs():
    """Other lengths than those of four_jobs, and three ranks: what a model of crowded CPUs was not made with."""
    long, short = random(10, 420, 24), random(72, 40, 40)
    tp2pp2, groups = ["--tp-size", 2, "--pp-size", 2], ["--tp-size", 4, "--dp-size", 4, "--ep-size", 4, "--enable-dp-attention"]
    layouts = {"pp3": ["--pp-size", 3], "dp3": ["--dp-size", 3], "tp4": ["--tp-size", 4], "pp4": ["--pp-size", 4],
               "tp2-pp2": tp2pp2, "tp4-dpa4-ep4": groups}
    return [Job(prefix + name, MINI, flags + words) for prefix, flags in (("long-", long), ("short-", short)) for name, words in layouts.items()]


def h200_jobs():
    drafts = ["--speculative-algorithm", "NEXTN", "--speculative-num-steps", 1,
              "--speculative-simulate-accept-length", 1.7]
    return [
        Job("lite-chat", LITE, chat(450)),
        Job("lite-batch", LITE, random(96, 600, 400)),
        Job("lite-fixed", LITE, random(700, 400, 60)),
        Job("lite-long", LITE, random(32, 9000, 100)),
        Job("lite-few", LITE, random(200, 300, 90, 0.4) + ["--max-running-requests", 24]),
        Job("lite-prefix", LITE, shared(40, 30, 1500, 100, 80)),
        Job("lite-online", LITE, random(450, 220, 60), ["--request-rate", 75]),
        Job("r1-batch", r1(13), random(48, 350, 160)),
        Job("r1-drafts", r1(13), random(96, 200, 200) + drafts),
        Job("r1-prefix", r1(13), shared(16, 16, 1400, 120, 60)),
    ]


LISTS = {"cpu": (cpu_jobs, [MINI]), "layouts": (layout_jobs, [MINI]), "four": (four_jobs, [MINI]), "crowd": (crowd_jobs, [MINI]), "h200": (h200_jobs, [LITE, r1(13)])}


def ticks(path):
    """What a process and the children it has waited for used, by its stat file in /proc."""
    try:
        with open(path) as f:
            return sum(int(x) for x in f.read().rpartition(")")[2].split()[11:15])
    except OSError:
        return 0


class Others:
    """What share of the CPUs' time other programs took, this host's other guests included."""

    def __init__(self, servers=()):
        self.servers, self.cpus = servers, os.sched_getaffinity(0)
        self.began, self.busy, self.own = time.time(), self.all_busy(), self.own_busy()

    def all_busy(self):
        """Seconds in which a CPU was not idle: user, nice, system, irq, softirq, steal."""
        with open("/proc/stat") as f:
            lines = [line.split() for line in f if line.startswith("cpu") and line[3].isdigit()]
        return sum(int(w[i]) for w in lines if int(w[0][3:]) in self.cpus for i in (1, 2, 3, 6, 7, 8)) / os.sysconf("SC_CLK_TCK")

    def own_busy(self):
        used = sum(ticks("/proc/%d/stat" % pid) for pid in (os.getpid(), *self.servers))
        return used / os.sysconf("SC_CLK_TCK")

    def share(self):
        busy, own = self.all_busy() - self.busy, self.own_busy() - self.own
        return max(0, busy - own) / ((time.time() - self.began) * len(self.cpus))


class Check:
    def __init__(self, args):
        self.fathom = os.path.realpath(args.fathom)
        self.args = args
        self.is_gpu = args.list == "h200"
        self.work = tempfile.mkdtemp(prefix="plan-check-")
        self.began = time.time()

    def run(self, *words, launcher=()):
        """Standard output of fathom; its standard error when it fails."""
        done = subprocess.run([*launcher, self.fathom, *map(str, words)], cwd=self.work, capture_output=True, text=True)
        if done.returncode:
            sys.exit("fathom %s: status %d\n%s" % (" ".join(map(str, words)), done.returncode, done.stderr or done.stdout))
        return done.stdout

    def undisturbed(self, kept, work, servers=()):
        """The result of work(), of several tries the one that others disturbed least, and their share of the CPUs.
        Tries are kept: None, None when time is over before one counts."""
        tries = kept.setdefault("tries", [])
        while True:
            others = Others(servers)
            result = work()
            tries.append([round(others.share(), 3), result])
            if tries[-1][0] <= self.args.others or self.is_gpu or len(tries) >= self.args.tries:
                del kept["tries"]
                return min(tries, key=lambda t: t[0])[::-1]
            print("%s: others took %.0f %% of the CPUs" % (kept.get("job", "calibration"), 100 * tries[-1][0]), flush=True)
            if not self.has_time():
                return None, None

    def calibrate(self, found, models, table):
        """The table, and the share of the CPUs that others took meanwhile; None: no time for it."""
        made = os.path.realpath(self.args.calibrated)
        text, share = self.undisturbed(found, lambda: self.calibrate_once(models, table))
        if text is None:
            return None, None
        with open(made, "w") as f:
            f.write(text)
        return made, share

    def calibrate_once(self, models, table):
        made = os.path.join(self.work, "calibrated.json")
        for model in models:
            begin = ["--machine", table] if table and self.is_gpu else []
            words = ["plan", "--calibrate", "--quiet", *begin, *model, "--write-table", made]
            print(self.run(*words, "--calibrate-seconds", self.args.calibrate_seconds), end="", flush=True)
            table = made
        with open(made) as f:
            return f.read()

    def cluster_of(self, job, table):
        """More ranks than CPUs are devices that are described."""
        if self.args.cluster:
            return ["--cluster", self.args.cluster]
        if self.is_gpu or not self.is_crowded(job):
            return []
        path = os.path.join(self.work, "ranks-%d.json" % job.n_rank())
        save(path, {"nodes": 1, "devices": job.n_rank(), "device": table})
        return ["--cluster", path]

    def is_crowded(self, job):
        return job.n_rank() > len(os.sched_getaffinity(0))

    def plan(self, job, table):
        given = job.words()
        sizes = [w for s in ("--tp-size", "--pp-size", "--dp-size", "--ep-size") if s not in given for w in (s, 1)]
        return json.loads(self.run("plan", "--json", "--machine", table, *self.cluster_of(job, table), *given, *sizes))

    def predict(self, job, table):
        return self.plan(job, table)["mean_tpot_ms" if job.is_online else "total_token_throughput"]

    def set_rates(self, jobs, table):
        """Online jobs load any machine alike.  A light one asks less than is answered one by one: above that, and near
        saturation, latencies are those of queues, which multiply every change of the machine's speed."""
        for j in jobs:
            if j.load:
                share, at_once = j.load
                capacity = Job("capacity", j.model, j.flags + ["--max-concurrency", at_once])
                per_second = self.plan(capacity, table)["total_token_throughput"] / j.tokens()
                j.online += ["--request-rate", str(round(share * per_second, 2))]

    def bench(self, key, *words, launcher=()):
        result = os.path.join(self.work, "result.json")
        if os.path.exists(result):
            os.remove(result)
        self.run("bench", "--quiet", *words, "--result-filename", result, launcher=launcher)
        with open(result) as f:
            return json.loads(f.read().splitlines()[-1])[key]

    def launcher(self, job):
        """fathom starts as many ranks itself as there are CPUs."""
        if self.is_gpu or not self.is_crowded(job):
            return []
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return ["mpirun", *root, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-np", str(job.n_rank())]

    def measure_offline(self, row, job):
        # A GPU's first steps load kernels; a CPU's are like the others.
        warm = [] if self.is_gpu else ["--skip-warmup"]
        return self.undisturbed(row, lambda: self.bench("total_throughput", *warm, *job.words(), launcher=self.launcher(job)))

    def measure_online(self, row, job):
        port = chance.randrange(20000, 32000)
        url = "http://127.0.0.1:%d" % port
        server = subprocess.Popen([self.fathom, "serve", "--quiet", *job.model, "--port", str(port)], cwd=self.work,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            await_server(url, server)
            asked = [*job.flags, *job.online]
            return self.undisturbed(row, lambda: self.bench("mean_tpot_ms", "--base-url", url, "--flush-cache", *asked), [server.pid])
        finally:
            server.terminate()
            server.wait()

    def measure(self, row, job):
        """What it reached, and the share of the CPUs that others took meanwhile; None: no time for it."""
        return (self.measure_online if job.is_online else self.measure_offline)(row, job)

    def seconds(self):
        return time.time() - self.began

    def has_time(self):
        return self.seconds() < self.args.patience


def await_server(url, server):
    for _ in range(300):
        try:
            if urllib.request.urlopen(url + "/health", timeout=2).status == 200:
                return
        except OSError:
            time.sleep(0.2)
        if server.poll() is not None:
            break
    sys.exit("the server on %s did not start" % url)


def predicted(row, source):
    return statistics.median(row["predicted"][source])


def measured(row):
    return statistics.median(row["measured"])


def spread(row):
    return (max(row["measured"]) - min(row["measured"])) / measured(row)


def error(row, source):
    """Of every measurement against the newest prediction before it: the median."""
    p = row["predicted"][source]
    return statistics.median(p[min(i, len(p) - 1)] / m for i, m in enumerate(row["measured"])) - 1


def print_titles(sources):
    print("%-14s %12s %9s%s" % ("job", "measured", "spread", "".join(" %12s %9s" % (s, "error") for s in sources)))


def print_row(row, sources):
    columns = "".join(" %12.1f %+7.1f %%" % (predicted(row, s), 100 * error(row, s)) for s in sources)
    print("%-14s %12.1f %7.1f %%%s" % (row["job"], measured(row), 100 * spread(row), columns), flush=True)


def print_summary(rows, sources):
    summary = {}
    for s in sources:
        e = [abs(error(r, s)) for r in rows]
        summary[s] = {"median_error": statistics.median(e), "worst_error": max(e)}
        print("%s, %d jobs: median error %.1f %%, worst %.1f %%"
              % (s, len(e), 100 * summary[s]["median_error"], 100 * summary[s]["worst_error"]))
        summary[s]["order"] = [print_order(layouts, s) for layouts in by_workload(rows)]
    return summary


def by_workload(rows):
    """Layouts of one workload: the job's name is theirs, behind a word for the workload where there are several."""
    groups = {}
    for r in rows:
        word, _, rest = r["job"].partition("-")
        is_layout = word[:2] in ("tp", "pp", "dp")
        if is_layout or rest[:2] in ("tp", "pp", "dp"):
            groups.setdefault("" if is_layout else word, []).append(r)
    return groups.values()


def print_order(layouts, source):
    """Layouts of one workload by what was predicted and measured, and the pairs that are in another order."""
    if len(layouts) < 2:
        return None
    by_plan = sorted(layouts, key=lambda r: -predicted(r, source))
    for text, order in (("predicted", by_plan), ("measured", sorted(layouts, key=lambda r: -measured(r)))):
        print("%s: %s" % (text, " > ".join(r["job"] for r in order)))
    pairs = [(a, b) for i, a in enumerate(by_plan) for b in by_plan[i + 1:]]
    known = [(a, b) for a, b in pairs if is_apart(a, b)]
    swapped = [(a, b) for a, b in known if measured(a) < measured(b)]
    print("%d of %d pairs in the right order; measurements of %d more overlap" %
          (len(known) - len(swapped), len(known), len(pairs) - len(known)))
    for a, b in swapped:
        print("  %s and %s swapped, %.1f %% apart" % (a["job"], b["job"], 100 * (measured(b) / measured(a) - 1)))
    return {"pairs": len(known), "right": len(known) - len(swapped), "overlapping": len(pairs) - len(known)}


def is_apart(a, b):
    """Every measurement of one is above every one of the other."""
    return max(a["measured"]) < min(b["measured"]) or max(b["measured"]) < min(a["measured"])


def save(path, found):
    if path:
        with open(path, "w") as f:
            json.dump(found, f, indent=1)
            f.write("\n")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("fathom", help="the program")
    p.add_argument("list", choices=LISTS, help="which jobs")
    p.add_argument("job", nargs="*", help="only these, by name")
    p.add_argument("--table", help="table of costs to predict with; on a GPU also what calibration begins with")
    p.add_argument("--calibrate", action="store_true", help="measure a table in every pass and predict with it, too")
    p.add_argument("--calibrate-seconds", type=int, default=120, help="time for each model's calibration (120)")
    p.add_argument("--calibrated", default="calibrated.json", help="where that table goes (calibrated.json)")
    p.add_argument("--cluster", help="predict for this cluster instead of this machine")
    p.add_argument("--predict-only", action="store_true", help="measure nothing")
    p.add_argument("--for", dest="patience", type=float, default=float("inf"), metavar="S", help="begin no measurement after S seconds")
    p.add_argument("--repeat", type=int, default=3, help="passes, and so measurements of each job (3)")
    p.add_argument("--others", type=float, default=0.05, help="share of the CPUs that others may take (0.05)")
    p.add_argument("--tries", type=int, default=3, help="calibrations or measurements until they take less, at most (3)")
    p.add_argument("--again", type=int, default=0, help="measure so many of the shortest jobs once more (0)")
    p.add_argument("--json", help="keep predictions and measurements here, and go on from there")
    return p.parse_args()


def new_rows(check, args):
    """The jobs, predicted by the table that is given."""
    jobs = [j for j in LISTS[args.list][0]() if not args.job or j.name in args.job]
    if not args.table and not args.calibrate:
        sys.exit("no table of costs: give --table or --calibrate")
    found = {"list": args.list, "version": check.run("--version").splitlines()[0], "date": time.strftime("%F %R", time.gmtime()),
             "jobs": [{"job": j.name, "command": "", "unit": "ms a token" if j.is_online else "tok/s", "online": None,
                       "predicted": {}, "measured": []} for j in jobs]}
    if args.table:
        predict_all(check, found, "table", os.path.realpath(args.table))
    return found


def named_jobs(found):
    """Every row with its job; arrivals are those of the first prediction."""
    jobs = {j.name: j for j in LISTS[found["list"]][0]()}
    for r in found["jobs"]:
        jobs[r["job"]].online = r["online"] or jobs[r["job"]].online
        yield r, jobs[r["job"]]


def predict_all(check, found, source, table):
    pairs = list(named_jobs(found))
    if any(r["online"] is None for r, _ in pairs):
        check.set_rates([j for _, j in pairs], table)
    for r, j in pairs:
        r["online"], r["command"] = j.online, " ".join(j.words())
        r["predicted"].setdefault(source, []).append(check.predict(j, table))


def calibrate_and_predict(check, args, found):
    table = os.path.realpath(args.table) if args.table else None
    made, others = check.calibrate(found, LISTS[args.list][1], table)
    if made is None:
        return
    found.setdefault("others", []).append(round(others, 3))
    predict_all(check, found, "calibrated", made)


def read_or_begin(check, args):
    if not args.json or not os.path.exists(args.json):
        return new_rows(check, args)
    with open(args.json) as f:
        found = json.load(f)
    if found["list"] != args.list:
        sys.exit("%s has the jobs of %s" % (args.json, found["list"]))
    return found


def n_calibrated(found):
    return len(found["jobs"][0]["predicted"].get("calibrated", []))


def measure_once(check, row, job):
    began = time.time()
    value, others = check.measure(row, job)
    if value is None:
        return
    row["measured"].append(value)
    row.setdefault("others", []).append(round(others, 3))
    row["seconds"] = round(time.time() - began, 1)


def run_pass(check, args, found, n):
    """Pass n: a calibration, if one is wanted, then every job that was measured n times."""
    if args.calibrate and n_calibrated(found) <= n and check.has_time():
        calibrate_and_predict(check, args, found)
        save(args.json, found)
        print("pass %d: %d tables after %.0f s" % (n + 1, n_calibrated(found), check.seconds()), flush=True)
    if args.predict_only or (args.calibrate and n_calibrated(found) <= n):
        return
    for row, job in named_jobs(found):
        if len(row["measured"]) == n and check.has_time() and (not args.job or job.name in args.job):
            measure_once(check, row, job)
            save(args.json, found)
            if len(row["measured"]) > n:
                print_row(row, list(row["predicted"]))


def main():
    args = arguments()
    check = Check(args)
    found = read_or_begin(check, args)
    for n in range(1 if args.predict_only else args.repeat):
        run_pass(check, args, found, n)
    rows, sources = found["jobs"], list(found["jobs"][0]["predicted"])
    if args.predict_only:
        for r in rows:
            print("%-14s" % r["job"], *("%s %.1f" % (s, predicted(r, s)) for s in sources), r["unit"])
        return save(args.json, found)
    pairs = sorted(named_jobs(found), key=lambda p: p[0].get("seconds", 0))
    for row, job in pairs[: args.again]:
        measure_once(check, row, job)
    done = [r for r in rows if len(r["measured"]) >= args.repeat]
    if done:
        print_titles(sources)
        for r in done:
            print_row(r, sources)
        found["summary"] = print_summary(done, sources)
    save(args.json, found)
    print("%d of %d jobs are measured, %.0f s" % (len(done), len(rows), check.seconds()))


if __name__ == "__main__":
    main()
