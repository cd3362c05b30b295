#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom scf, NWChem and PySCF on the same decks, one after the other, on an otherwise idle machine:
#
#     tools/peer/scf.sh [BUILD] [DECK...]
#
# NWChem runs the deck as it stands, direct, with CORES ranks; PySCF builds the same molecule, direct,
# with CORES threads, the same thresholds and a grid of the same size.  Whichever is not installed is
# left out: NWCHEM (the program), PYSCF_PYTHON (a Python that has pyscf).  Wall time of the whole
# program; the lowest of REPEAT runs.
set -eu

build=${1:-build}
[ $# -eq 0 ] || shift
here=$(cd "$(dirname "$0")/../.." && pwd)
case $build in /*) ;; *) build=$PWD/$build ;; esac
cores=${CORES:-$(lscpu -p=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)}
repeat=${REPEAT:-1}
nwchem=${NWCHEM:-nwchem.openmpi}
python=${PYSCF_PYTHON:-python3}
data=$here/tests/data/chem/nwchem
[ $# -gt 0 ] || set -- "$data/w1.nw" "$data/w2.nw" "$here/bench/decks/w4.nw"
[ -x "$build/fathom" ] || { echo "scf.sh: $build/fathom is missing" >&2; exit 2; }
command -v "$nwchem" >/dev/null 2>&1 || nwchem=
"$python" -c 'import pyscf' 2>/dev/null || python=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none

now() { date +%s.%N; }
energies() { sed -n 's/.*Total \(SCF\|DFT\) energy = *\([-0-9.]*\).*/\2/p' "$1" | tr '\n' ' '; }

# best NAME COMMAND...: seconds of the fastest run, its output in $work/NAME
best()
{
    name=$1 least=
    shift
    for _ in $(seq "$repeat"); do
        rm -rf "$work/run" && mkdir "$work/run" && cp "$deck" "$work/run/deck.nw"
        began=$(now)
        (cd "$work/run" && "$@") >"$work/$name" 2>"$work/log" || { cat "$work/log" >&2; tail -5 "$work/$name" >&2; }
        least=$(awk -v a="$least" -v b="$(now)" -v c="$began" \
            'BEGIN { t = b - c; print (a == "" || t < a) ? t : a }')
    done
    echo "$least"
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a == "-") print "-"; else printf "%.1fx", a / b }'; }
show() { awk -v a="$1" 'BEGIN { if (a == "-") print "-"; else printf "%.1f", a }'; }

echo "$cores cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
    "load $(cut -d' ' -f1 /proc/loadavg) at the start"
printf '%-8s %9s %9s %7s %9s %7s  %s\n' seconds fathom NWChem ratio PySCF ratio "largest difference of energies"
for deck in "$@"; do
    theirs=- pyscf=-
    ours=$(best ours "$build/fathom" scf deck.nw --threads "$cores")
    [ -z "$nwchem" ] || theirs=$(best nwchem env OMP_NUM_THREADS=1 mpirun -np "$cores" "$nwchem" deck.nw)
    [ -z "$python" ] || pyscf=$(best pyscf env OMP_NUM_THREADS="$cores" "$python" "$here/tools/peer/scf_pyscf.py" deck.nw)
    differs=
    for other in nwchem pyscf; do
        [ -s "$work/$other" ] || continue
        differs="$differs $other $(echo "$(energies "$work/ours")$(energies "$work/$other")" |
            awk '{ m = 0; for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (d < 0) d = -d; if (d > m) m = d }
                   printf "%.1e", m }')"
        rm -f "$work/$other"
    done
    printf '%-8s %9s %9s %7s %9s %7s %s\n' "$(basename "$deck" .nw)" "$(show "$ours")" "$(show "$theirs")" \
        "$(ratio "$theirs" "$ours")" "$(show "$pyscf")" "$(ratio "$pyscf" "$ours")" "$differs"
done
[ -n "$nwchem" ] || echo "NWChem is not installed (apt install nwchem-openmpi; NWCHEM names the program)"
[ -n "$python" ] || echo "PySCF is not installed (pip install pyscf; PYSCF_PYTHON names its Python)"
