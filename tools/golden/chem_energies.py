#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write energies.txt for a folder of decks: NWChem's energies with tight settings.

    tools/golden/chem_energies.py tests/data/chem/variety [DECK...]

Each deck is run as it stands, but for thresholds that are set tight before each of its
tasks (TIGHT below); grid, functional, basis and geometry stay the deck's.  Needs the
Debian package nwchem.  Offline: tests read energies.txt alone.
"""
import os
import re
import subprocess
import sys
import tempfile

TIGHT = {
    "scf": "scf; direct; tol2e 1e-12; thresh 1e-8; maxiter 200; end\n",
    "dft": "dft; direct; tolerances accCoul 12 accAOfunc 25 tol_rho 1e-14; iterations 200\n"
           " convergence energy 1e-9 density 1e-8 gradient 1e-7; end\n",
}
HEAD = """\
# Reference energies in hartree, one line a task in the order of its deck.
# deck  task  method  energy  tolerance  electrons on the grid (- where there is none)
"""


def tightened(deck):
    """The deck with tight thresholds before each task."""
    out = []
    for line in deck.splitlines():
        task = re.match(r"\s*task\s+(\w+)", line, re.I)
        out.append((TIGHT[task.group(1).lower()] if task else "") + line)
    return "\n".join(out) + "\n"


def run(deck):
    with tempfile.TemporaryDirectory() as scratch:
        with open(os.path.join(scratch, "deck.nw"), "w") as f:
            f.write(tightened(deck))
        done = subprocess.run(["nwchem.openmpi", "deck.nw"], cwd=scratch, capture_output=True, text=True)
        return done.stdout


def tasks(output):
    """[(task, method, energy, electrons or None)] in the order of the output."""
    found = []
    for m in re.finditer(r"wavefunction\s+=\s+(\w+)|Total SCF energy =\s+(\S+)|Wavefunction type:\s+(closed|spin)"
                         r"|Total DFT energy =\s+(\S+)|Numeric. integr. density =\s+(\S+)", output):
        wave, scf, kind, dft, density = m.groups()
        if wave:
            method = wave
        elif kind:
            method = "RKS" if kind == "closed" else "UKS"
        elif scf:
            found.append(("scf", method, float(scf), None))
        elif dft:
            energy = float(dft)
        else:
            found.append(("dft", method, energy, float(density)))
    return found


def electrons(output):
    """Of the molecule, for the tolerance."""
    m = re.search(r"closed shells\s+=\s+(\d+)\s+open shells\s+=\s+(\d+)|No. of electrons :\s+(\d+)", output)
    return int(m.group(3)) if m and m.group(3) else 2 * int(m.group(1)) + int(m.group(2)) if m else 20


def main():
    folder, chosen = sys.argv[1], sys.argv[2:]
    table = os.path.join(folder, "energies.txt")
    old = [l for l in open(table) if not l.startswith("#")] if os.path.exists(table) else []
    lines = {}
    for l in old:
        lines.setdefault(l.split()[0], []).append(l)
    for deck in chosen or sorted(f for f in os.listdir(folder) if f.endswith(".nw")):
        output = run(open(os.path.join(folder, deck)).read())
        wanted = len(re.findall(r"^\s*task", open(os.path.join(folder, deck)).read(), re.I | re.M))
        got = tasks(output)
        if len(got) != wanted or "did not converge" in output:
            print(f"{deck}: {len(got)} energies of {wanted}")
            print(output[-2000:])
        lines[deck] = []
        for task, method, energy, density in got:
            tol = 2e-8 if task == "scf" else max(1e-7, 1e-8 * electrons(output))
            shown = "-" if density is None else f"{density:.9f}"
            lines[deck].append(f"{deck:<24} {task} {method:<4} {energy:18.12f}  {tol:.1e}  {shown}\n")
        print("".join(lines[deck]), end="", flush=True)
    with open(table, "w") as f:
        f.write(HEAD + "".join(l for deck in sorted(lines) for l in lines[deck]))


if __name__ == "__main__":
    main()
