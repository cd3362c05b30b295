#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the basis-set data of src/chem/basis/data from NWChem's library files.

    tools/basis/write_basis.py /usr/share/nwchem/libraries src/chem/basis/data

The library is that of the Debian package nwchem-data.  Offline: the build reads
the written files alone.  With the Python package basis_set_exchange installed,
--compare says where a set differs from the one published there.
"""
import argparse
import os
import re

SYMBOLS = "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar".split()
KINDS = ["S", "SP", "P", "D", "F", "G"]

# File of a family: its sets, as (name in decks, name of the library's file).
FAMILIES = {
    "sto-3g": [("sto-3g", "sto-3g")],
    "3-21g": [("3-21g", "3-21g"), ("3-21g*", "3-21gs"), ("3-21++g", "3-21++g"), ("3-21++g*", "3-21++gs")],
    "6-31g": [("6-31" + d + "g" + p, "6-31" + d + "g" + "s" * len(p)) for d in ("", "+", "++") for p in ("", "*", "**")]
    + [("6-31g(2df,p)", "6-31g2df_p"), ("6-31g(3df,3pd)", "6-31g3df_3pd")],
    "6-311g": [("6-311" + d + "g" + p, "6-311" + d + "g" + "s" * len(p)) for d in ("", "+", "++") for p in ("", "*", "**")]
    + [("6-311+g(2d,p)", "6-311+g2d_p"), ("6-311g(2df,2pd)", "6-311g2df_2pd"),
       ("6-311++g(2d,2p)", "6-311++g2d_2p"), ("6-311++g(3df,3pd)", "6-311++g3df_3pd")],
    "def2": [(n, n) for n in ("def2-svp", "def2-svpd", "def2-tzvp", "def2-tzvpp", "def2-tzvpd", "def2-qzvp")],
    "cc-pvdz": [("cc-pvdz", "cc-pvdz"), ("aug-cc-pvdz", "aug-cc-pvdz")],
    "cc-pvtz": [("cc-pvtz", "cc-pvtz"), ("aug-cc-pvtz", "aug-cc-pvtz")],
    "cc-pvqz": [("cc-pvqz", "cc-pvqz"), ("aug-cc-pvqz", "aug-cc-pvqz")],
}

PAPERS = {
    "sto-3g": "W.J. Hehre, R.F. Stewart, J.A. Pople, J. Chem. Phys. 51, 2657 (1969); 52, 2769 (1970)",
    "3-21g": "J.S. Binkley, J.A. Pople, W.J. Hehre, J. Am. Chem. Soc. 102, 939 (1980); M.S. Gordon et al., 104, 2797 (1982)",
    "6-31g": "W.J. Hehre, R. Ditchfield, J.A. Pople, J. Chem. Phys. 56, 2257 (1972); M.M. Francl et al., 77, 3654 (1982)",
    "6-311g": "R. Krishnan, J.S. Binkley, R. Seeger, J.A. Pople, J. Chem. Phys. 72, 650 (1980); A.D. McLean, G.S. Chandler, 72, 5639 (1980)",
    "def2": "F. Weigend, R. Ahlrichs, Phys. Chem. Chem. Phys. 7, 3297 (2005)",
    "cc-pvdz": "T.H. Dunning, J. Chem. Phys. 90, 1007 (1989); D.E. Woon, T.H. Dunning, 98, 1358 (1993)",
    "cc-pvtz": "T.H. Dunning, J. Chem. Phys. 90, 1007 (1989); D.E. Woon, T.H. Dunning, 98, 1358 (1993)",
    "cc-pvqz": "T.H. Dunning, J. Chem. Phys. 90, 1007 (1989); D.E. Woon, T.H. Dunning, 98, 1358 (1993)",
}


def number(word):
    """The shortest text that reads back as the same number."""
    text = repr(float(word.upper().replace("D", "E")))
    text = re.sub(r"\.0$", "", text)
    text = re.sub(r"^(-?)0\.", r"\1.", text)
    return re.sub(r"e([-+])0*", lambda m: "e" + m.group(1).replace("+", ""), text)


def read_library(path, set_name):
    """{symbol: [(kind, rows)]} of one set."""
    wanted = re.compile(r'basis\s+"?([A-Za-z]+)_' + re.escape(set_name) + r'"?(\s|$)', re.I)
    found, shells = {}, None
    for line in open(path, errors="replace"):
        line = line.split("#")[0].strip()
        start = wanted.match(line)
        words = line.split()
        if start:
            shells = found.setdefault(start.group(1).capitalize(), [])
        elif not words:
            continue
        elif words[0].lower() in ("end", "basis", "ecp"):
            shells = None
        elif shells is not None and words[0][0].isalpha():
            shells.append((words[1].upper(), []))
        elif shells is not None:
            shells[-1][1].append(" ".join(number(w) for w in words))
    return {s: [(kind, tuple(rows)) for kind, rows in found[s]] for s in SYMBOLS if s in found}


def order(shell):
    kind, rows = shell
    return KINDS.index(kind), -max(float(r.split()[0]) for r in rows), rows


def family_text(family, sets):
    """One file: each shell once, with the letters of the sets that have it."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    out = ["# SPDX-License-Identifier: Apache-2.0",
           "# Basis sets " + ", ".join(name for name, _ in sets) + "; H to Ar.",
           "# Numbers of NWChem 7.0.2's library (Debian nwchem-data), written by tools/basis/write_basis.py.",
           "# " + PAPERS[family] + "."]
    out.append("sets " + " ".join(letters[i] + " " + name for i, (name, _) in enumerate(sets)))
    data = [shells for _, shells in sets]
    for symbol in SYMBOLS:
        having = [i for i, d in enumerate(data) if symbol in d]
        shells = sorted({s for i in having for s in data[i][symbol]}, key=order)
        if shells:
            out.append(symbol)
        for shell in shells:
            times = {data[i][symbol].count(shell) for i in having} - {0}
            assert times == {1}, (family, symbol, shell)
            of = [i for i in having if shell in data[i][symbol]]
            out.append(shell[0] + " " + ("*" if len(of) == len(sets) else "".join(letters[i] for i in of)))
            out.extend(shell[1])
    return "\n".join(out) + "\n"


def flat(shells):
    """Contractions as (l, ((exponent, coefficient), ...)), zeros left out."""
    out = []
    for kind, rows in shells:
        table = [[float(x) for x in r.split()] for r in rows]
        for c in range(1, len(table[0])):
            l = c - 1 if kind == "SP" else "SPDFG".index(kind)
            out.append((l, tuple((r[0], r[c]) for r in table if r[c])))
    return sorted(out)


def compare(name, shells_of):
    import basis_set_exchange
    if name not in map(str.lower, basis_set_exchange.get_all_basis_names()):
        print(f"{name}: not published there")
        return
    published = basis_set_exchange.get_basis(name)["elements"]
    differs = []
    for z, symbol in enumerate(SYMBOLS, 1):
        theirs = []
        for s in published.get(str(z), {}).get("electron_shells", []):
            for c, column in enumerate(s["coefficients"]):
                l = s["angular_momentum"][c if len(s["angular_momentum"]) > 1 else 0]
                theirs.append((l, tuple((float(e), float(x)) for e, x in zip(s["exponents"], column) if float(x))))
        if flat(shells_of.get(symbol, [])) != sorted(theirs):
            differs.append(symbol)
    print(f"{name}: " + ("as published" if not differs else "differs for " + " ".join(differs)))


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("library")
    args.add_argument("out")
    args.add_argument("--compare", action="store_true", help="with the Basis Set Exchange")
    a = args.parse_args()
    for family, sets in FAMILIES.items():
        read = [(name, read_library(os.path.join(a.library, file), name)) for name, file in sets]
        for name, shells in read:
            missing = [s for s in SYMBOLS if s not in shells]
            if missing:
                print(f"{name}: the library has no " + " ".join(missing))
        with open(os.path.join(a.out, family + ".basis"), "w") as f:
            f.write(family_text(family, read))
        for name, shells in read:
            if a.compare:
                compare(name, shells)


if __name__ == "__main__":
    main()
