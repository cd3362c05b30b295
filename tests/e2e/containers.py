#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""containers.py: recipes of containers are read, not built.  What they copy is there, their commands
are well-formed shell, the packages they install bring every library the program is linked to."""
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CONTAINERS = os.path.join(ROOT, "contrib", "containers")
INSTRUCTIONS = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "ENTRYPOINT", "CMD", "ENV", "LABEL"}
SECTIONS = {"files", "post", "environment", "runscript", "test"}
# Where a development package and the library it brings have names that differ otherwise.
LIBRARY = {"libpcre2-dev": "libpcre2-8", "libhwloc-dev": "libhwloc15", "libopenblas-dev": "libopenblas0",
           "liblapacke-dev": "liblapacke", "libxc-dev": "libxc9"}
HEADERS_ONLY = {"libxxhash-dev"}


class Recipe:
    def __init__(self, name):
        self.name, self.copied, self.shell, self.stages = name, [], [], []

    def check(self, ok, why):
        if not ok:
            sys.exit(f"{self.name}: {why}")


def docker(name, text):
    """A Dockerfile: one instruction per line, continued by a backslash."""
    r = Recipe(name)
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        r.check(word in INSTRUCTIONS, f"no instruction: {line}")
        r.check(rest.strip(), f"{word} says nothing")
        if word == "FROM":
            r.stages.append((rest.split() + ["", ""])[2])
        elif word == "RUN":
            r.shell.append(rest)
        elif word == "COPY":
            what = rest.split()
            stage = what.pop(0)[7:] if what[0].startswith("--from=") else None
            r.copied += [(stage, path) for path in what[:-1]]
    return r


def apptainer(name, text):
    """A definition file: headers, then sections that begin with a percent sign."""
    r, section, stage = Recipe(name), None, None
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if line.startswith("#"):
            continue
        header = re.match(r"(\w+): (\S+)$", line)
        if header:
            r.check(header[1] in ("Bootstrap", "From", "Stage"), f"no header: {line}")
            section = None
            if header[1] == "Stage":
                r.stages.append(header[2])
        elif line.startswith("%"):
            words = line[1:].split()
            section, stage = words[0], words[2] if words[1:2] == ["from"] else None
            r.check(section in SECTIONS, f"no section: {line}")
            if section != "files":
                r.shell.append("")
        elif section == "files":
            r.copied += [(stage, line.split()[0])] if line.strip() else []
        elif line.strip():
            r.check(section, f"outside of any section: {line}")
            r.shell[-1] += line + "\n"
    return r


def check_copies(r):
    for stage, path in r.copied:
        if stage is not None:
            r.check(stage in r.stages[:-1], f"copies from {stage}, which is no stage before the last")
            r.check(any("PREFIX=" + path in run for run in r.shell), f"copies {path}, which no command makes")
        else:
            r.check(os.path.exists(os.path.join(ROOT, path)), f"copies {path}, which is not there")


def check_shell(r):
    for text in r.shell:
        got = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
        r.check(got.returncode == 0, f"{got.stderr.strip()}: {text}")
        for tool in re.findall(r"(?:^|\s)(tools/\S+)", text):
            r.check(os.access(os.path.join(ROOT, tool), os.X_OK), f"runs {tool}, which is not there")


def build_packages():
    text = open(os.path.join(ROOT, "tools", "packages.sh"), encoding="utf-8").read()
    return re.search(r'for_what="to build"\s+wanted="([^"]*)"', text)[1].split()


def check_packages(r):
    """Each development package of the build has a library among those of the run."""
    there = [p for text in r.shell for words in re.findall(r"apt-get install ([^&\n]*)", text)
             for p in words.split() if not p.startswith("-")]
    r.check(there, "installs nothing to run with")
    r.check(len(set(there)) == len(there), "installs a package twice")
    for p in build_packages():
        if p in HEADERS_ONLY or not p.startswith("lib"):
            continue
        stem = LIBRARY.get(p, p[:-len("-dev")])
        r.check(any(x.startswith(stem) for x in there), f"nothing for {p}: no {stem}*")
    r.check("openmpi-bin" in there, "no mpirun")
    return there


def check_known(names):
    """Are they Debian's?  Asked on Debian 12 itself, if it has its lists of packages."""
    try:
        about = open("/etc/os-release", encoding="utf-8").read()
        known = subprocess.run(["apt-cache", "policy", *names], capture_output=True, text=True, check=False).stdout
    except OSError:
        return
    if "ID=debian" not in about or 'VERSION_ID="12"' not in about or "http" not in known:
        return
    for p in names:
        if not re.search(rf"^{re.escape(p)}:\n.*\n  Candidate: \d", known, re.M):
            sys.exit(f"Debian 12 has no package {p}")


def main():
    names = sorted(os.listdir(CONTAINERS))
    installed = {}
    for name in names:
        text = open(os.path.join(CONTAINERS, name), encoding="utf-8").read()
        r = (apptainer if name.endswith(".def") else docker)(name, text)
        r.check(len(r.stages) == 2, f"has {len(r.stages)} stages")
        check_copies(r)
        check_shell(r)
        installed[name] = check_packages(r)
    for docker_file, definition in (("Dockerfile", "fathom.def"), ("Dockerfile.cuda", "fathom-cuda.def")):
        if installed[docker_file] != installed[definition]:
            sys.exit(f"{docker_file} and {definition} install different packages")
    check_known(installed["Dockerfile"])
    print("recipes:", ", ".join(names))


if __name__ == "__main__":
    main()
