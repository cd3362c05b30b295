#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README and docs name must exist:  docs.py PROGRAM BUILD

Links and their headings, paths in backquotes, tests, endpoints, commands and options of `fathom`, targets of
`make`, variables FM_*, a place in README and tour for every room of src, every command in the manual page, options
in the manual page and in the scripts of contrib. Defaults in tables are the program's."""

import fnmatch
import glob
import itertools
import os
import re
import subprocess
import sys
import tempfile

program, build = sys.argv[1:]
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
faults = []

# Options in our pages that belong to other programs.
OPTIONS_OF_OTHERS = {
    "mpirun, srun": "bind-to map-by mca oversubscribe hostfile mpi ntasks-per-node exclude",
    "hf": "include local-dir",
    "llama.cpp": "cache-ram fit",
    "nvidia-smi, nsys, ncu": "format query-gpu cuda-graph-trace metrics",
    "pkg-config, apt-get": "cflags libs print-options",
}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


pages = {page: read(page) for page in ["README.md", *glob.glob("docs/*.md"), *glob.glob("src/**/README.md", recursive=True),
                                       "python/README.md", *glob.glob("contrib/**/README.md", recursive=True),
                                       "models/fathom-tiny/README.md", "tests/data/README.md"]}


def fault(page, what):
    faults.append(f"{page}: {what}")


def quoted(page):
    """What stands in backquotes."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", pages[page], flags=re.M | re.S)))


def command_lines(page):
    """Lines of code, continued ones joined, comments dropped."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", pages[page], re.M | re.S)
    indented = re.findall(r"^    .*$", pages[page], re.M)
    code = "\n".join([*fenced, *indented, *quoted(page)])
    for line in re.sub(r"\\\n\s*", "", code).splitlines():
        yield re.sub(r"(^|\s)#.*", "", line)


# ---- links


def headings(page):
    """The anchors that GitHub makes of them."""
    prose = re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^#+ +(.*)$", prose, re.M)}


def check_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", pages[page]):
        path, _, heading = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if re.match(r"[a-z]+:", target):
            continue
        if not os.path.exists(path):
            fault(page, f"link to {target}, which does not exist")
        elif heading and heading not in headings(path):
            fault(page, f"link to {target}: no such heading")


# ---- paths, tests and endpoints in backquotes


def files_and_folders():
    """Of the repository: without builds and what is hidden."""
    for folder, folders, files in os.walk("."):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        for name in folders + files:
            yield os.path.normpath(os.path.join(folder, name))


tree = list(files_and_folders())
tops = {path for path in tree if "/" not in path and os.path.isdir(path)}
rooms = {path for path in tree if path.startswith("src/") and path.count("/") in (1, 2) and os.path.isdir(path)
         and (path.count("/") == 1 or path.startswith(("src/llm/", "src/chem/")))} - {"src/llm"}
tests = "".join(read(path) for path in tree if re.match(r"tests/.*CMakeLists.txt$", path))
with tempfile.TemporaryDirectory() as beside:  # in the build's own folder the log of the tests that run would be replaced
    with open(os.path.join(beside, "CTestTestfile.cmake"), "w", encoding="utf-8") as f:
        f.write(f'subdirs("{os.path.abspath(build)}")\n')
    tests += subprocess.run(["ctest", "--test-dir", beside, "-N"], capture_output=True, text=True, check=True).stdout
endpoints = read("src/llm/serve/loop/routes_tab.c") + read("src/llm/route/routes.c")

SOURCE = r"\.(c|h|cu|cuh|py|sh|awk|cmake|md|nw)$"
FIRST_FOLDER = "|".join(sorted(tops | {os.path.basename(room) for room in rooms} - {"src"}))
LABELS = r"(unit|check|golden|rank|e2e|fuzz|cuda)/\w"


def without_braces(path):
    """a/{b,c}*.h -> a/b*.h, a/c*.h"""
    parts = re.split(r"\{([^}]*)\}", path)
    return ["".join(one) for one in itertools.product(*(part.split(",") if k % 2 else [part] for k, part in enumerate(parts)))]


def is_in_tree(path):
    """The whole path or its end, with or without a suffix: `sched/sched.h`, `kv/page_hash`, `tune*.c`."""
    pattern = path.rstrip("/")
    return any(fnmatch.fnmatch(have, end + pattern + suffix) for have in tree for end in ("", "*/") for suffix in ("", ".[ch]"))


def is_test(name):
    label, _, rest = name.partition("/")
    return rest.split("@")[0].rstrip("/*") in tests or is_in_tree(f"{label}/{rest}") or is_in_tree(f"tests/{label}/{label}_{rest}.c")


def check_names(page):
    for word in quoted(page):
        if re.search(r"[\s<>$~…:]|^name\.[ch]$", word):
            continue
        if word.startswith("/"):
            if re.match(r"/(v1/)?[a-z_]+", word) and not word.startswith(("/proc", "/dev", "/sys", "/tmp")):
                if not re.search(re.escape('"' + re.sub(r"\?.*|/[A-Z]{2}.*", "", word)) + '["/]', endpoints):
                    fault(page, f"`{word}` is no endpoint")
        elif re.match(LABELS, word):
            if not is_test(word):
                fault(page, f"`{word}` is no test")
        elif re.search(SOURCE, word) or re.match(f"({FIRST_FOLDER})/", word):
            for path in without_braces(word.replace("NAME", "*")):
                if not is_in_tree(path):
                    fault(page, f"`{path}` does not exist")


# ---- commands, options, targets, variables


def says(*words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


commands = re.findall(r"^  ([a-z]+)  +", says("--help").split("fathom help")[0], re.M)
PASS_ON = {"tune", "ablate"} # options of the program they run
options = {command: set(re.findall(r"--([a-z][a-z0-9-]*)", says(command, "--help"))) for command in commands}
accepted = set(re.findall(r'"([a-z][a-z0-9-]+)"', read("app/foreign_flags_tab.c")))
scripts = "".join(read(path) for path in tree if re.match(r"(tools|bench|tests)/.*\.(py|sh|c|cu)$", path))
others = set(" ".join(OPTIONS_OF_OTHERS.values()).split())
source = "".join(read(path) for path in tree if re.match(r"(app|src|cmake|tools|tests|bench|Makefile|CMakeLists)", path)
                 and re.search(r"(\.(c|h|cu|cuh|py|sh|cmake|txt)|Makefile)$", path))
targets = set(re.findall(r"^([a-z][a-z-]*):", read("Makefile"), re.M))


def is_option(name, of):
    return name in of | accepted or len({have for have in of if have.startswith(name)}) == 1


def check_commands(page):
    for line in command_lines(page):
        if re.search(r"\.(sh|py) ", line): # whose argument the program is
            continue
        for command, words in re.findall(r"(?:^|[/\s`])fathom ([a-z]+)([^|;&`]*)", line):
            if command not in commands:
                fault(page, f"`fathom {command}` is no command")
                continue
            for name in re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])", words):
                if command not in PASS_ON and not is_option(name, options[command]):
                    fault(page, f"`fathom {command}` has no --{name}")
        for target in re.findall(r"(?:^|&& )make ([a-z][a-z-]*)", line):
            if target not in targets:
                fault(page, f"`make {target}` is no target")


def read_defaults():
    """Numbers that --help gives as defaults, of flags that have the same one in all commands; 0 often means
    "chosen by the program", which the help then explains."""
    said = {}
    for command in commands:
        for line in says(command, "--print-options").splitlines():
            found = re.match(r"--([a-z0-9-]+)=?\t(.*)\(default ([0-9]+(?:\.[0-9]+)?)\)$", line)
            if found and "0: " not in found[2]:
                said.setdefault(found[1], set()).add(float(found[3]))
    return {name: values.pop() for name, values in said.items() if len(values) == 1}


defaults = read_defaults()


def check_defaults(page):
    """Tables with the columns flag and default: a number there is the program's."""
    for table in re.findall(r"^\| flag \| default \|.*\n\|[-|: ]+\n((?:\|.*\n)+)", pages[page], re.M):
        for row in table.splitlines():
            flags, default = (cell.strip() for cell in row.split("|")[1:3])
            names, values = re.findall(r"`--([a-z0-9-]+)`", flags), default.split(", ")
            for name, value in zip(names, values if len(values) == len(names) else []):
                if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value) and defaults.get(name, float(value)) != float(value):
                    fault(page, f"--{name}: the default is {defaults[name]:g}, not {value}")


def check_manual(page):
    text = read(page).replace("\\-", "-")
    for command in commands:
        if not re.search(rf"^\.SS {command}\b|^\.B fathom {command}\b", text, re.M):
            fault(page, f"fathom {command} is not in it")
    for name in set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])", text)):
        if not is_option(name, set().union(*options.values())) and name not in others:
            fault(page, f"--{name} is no option")


def check_script(path):
    """Commands of `fathom` in a job script or a unit."""
    code = re.sub(r"\\\n\s*", "", re.sub(r"^\s*#.*\n", "", read(path), flags=re.M))
    for command, words in re.findall(r"(?:FATHOM\"|bin/fathom) ([a-z]+)([^|;&\n]*)", code):
        for name in re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])", words):
            if command not in commands or not is_option(name, options[command]):
                fault(path, f"`fathom {command}` has no --{name}")


def check_options(page):
    every = set().union(*options.values())
    for name in set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])", pages[page])):
        if not is_option(name, every) and name not in others and f"--{name}" not in scripts and f'"{name}"' not in scripts:
            fault(page, f"--{name} is no option")


def check_variables(page):
    every = set().union(*options.values())
    for name in set(re.findall(r"\bFM_[A-Z][A-Z0-9_]*[A-Z0-9]", pages[page])):
        if name not in source and name[3:].lower().replace("_", "-") not in every:
            fault(page, f"{name} is read nowhere")


# ---- rooms


def check_rooms():
    table = {os.path.normpath(path) for word in quoted("README.md") for path in without_braces(word)}
    tour = pages["docs/tour.md"]
    for room in sorted(rooms):
        if room not in table and os.path.dirname(room) not in table:
            fault("README.md", f"{room} has no row")
        if not re.search(rf"[`/]{os.path.basename(room)}[`/]", tour):
            fault("docs/tour.md", f"{room} is not named")


for page in sorted(pages):
    check_links(page)
    check_names(page)
    check_commands(page)
    check_options(page)
    check_defaults(page)
    check_variables(page)
check_rooms()
check_manual("docs/fathom.1")
for path in glob.glob("contrib/*/*"):
    if os.path.isfile(path):
        check_script(path)
print("\n".join(faults) or f"{len(pages)} pages: all that they name exists")
sys.exit(bool(faults))
