#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom scf: what it prints, what it refuses, what it leaves behind.
. "$(dirname "$0")/lib.sh"
cd "$work"
water()
{
    cat <<'END'
geometry noautosym
 O 0 0 0.1173
 H 0 0.7572 -0.4692
 H 0 -0.7572 -0.4692
end
basis spherical
 * library 6-31g*
end
END
}
deck() # deck FILE START LINE...: a water with these tasks
{
    file=$1
    echo "$2" >"$file"
    shift 2
    water >>"$file"
    for line in "$@"; do echo "$line" >>"$file"; done
}
energy() { sed -n "s/.*Total $1 energy = *//p" "$work/out"; }
close_to() # close_to A B DIGITS
{
    awk -v a="$1" -v b="$2" -v d="$3" 'BEGIN { x = a - b; if (x < 0) x = -x; exit !(a != "" && x < d) }' ||
        fail "$1 and $2 differ by more than $3"
}

# Lines that scripts look for.
deck good.nw "start good" "scf; thresh 1e-7; end" "task scf" "dft; xc b3lyp; grid fine; end" "task dft"
run 0 "$fathom" scf good.nw
for line in "Total SCF energy =" "One-electron energy =" "Two-electron energy =" "Nuclear repulsion energy =" \
    "Total DFT energy =" "One electron energy =" "Coulomb energy =" "Exchange-Corr. energy =" \
    "Numeric. integr. density =" "iter       energy          gnorm" "convergence    iter        energy" \
    "d= 0,ls=0.0,diis     2 " "Mulliken analysis" "Dipole moment" " Vector    5  Occ=2.000000D+00  E=-" \
    "Task  times  cpu:" "Total times  cpu:"; do
    grep -qF "$line" "$work/out" || fail "no line \"$line\""
done
scf=$(energy SCF)
close_to "$scf" -76.009 0.01
[ -s good.movecs ] || fail "no vectors file"
run 0 "$fathom" scf --quiet good.nw
[ "$(wc -l <"$work/out")" -eq 2 ] || fail "--quiet is not quiet"
[ ! -s "$work/err" ] || fail "stderr is not empty"

# JSON: alone on stdout, whole, with the same numbers.
run 0 "$fathom" scf good.nw --json
python3 - "$work/out" "$scf" <<'END' || fail "JSON"
import json, sys
j = json.load(open(sys.argv[1]))
a, b = j["tasks"]
assert j["converged"] is True and j["ranks"] == 1 and j["peak_bytes"] > 1e6 and j["wall_s"] > 0
assert a["method"] == "RHF" and b["method"] == "RKS" and a["converged"] and b["converged"]
assert abs(a["energy"] - float(sys.argv[2])) < 1e-9 and abs(b["electrons_integrated"] - 10) < 1e-5
assert len(a["iterations"]) == a["n_iteration"] and a["iterations"][-1]["energy"] == a["energy"]
e = b["energies"]
total = e["one_electron"] + e["coulomb"] + e["exchange_correlation"] + e["nuclear_repulsion"]
assert abs(total - b["energy"]) < 1e-9
assert abs(sum(a["mulliken_charges"])) < 1e-9 and len(a["orbital_sets"][0]["energies"]) == a["orbitals"]
END

# Without `start` the deck's own name is that of its files.
deck mine.nw "" "task scf"
run 0 "$fathom" scf "$work/mine.nw"
[ -s mine.movecs ] || fail "no mine.movecs"
[ ! -e fathom.movecs ] || fail "fathom.movecs"

# semidirect: no more than the machine has, some where the deck does not say how much.
kept() { sed -n 's/.*integrals kept, at most *\([0-9.]*\) MB.*/\1/p' "$work/out"; }
deck semi.nw "start semi" "scf; thresh 1e-7; semidirect memsize 900000000000000; end" "task scf"
run 0 "$fathom" scf semi.nw
awk -v kept="$(kept)" '/MemTotal/ { exit !(kept > 0 && kept * 1e6 < $2 * 1024) }' /proc/meminfo ||
    fail "more integrals are kept than there is memory"
close_to "$(energy SCF)" "$scf" 1e-9
deck semi.nw "start semi" "scf; semidirect; end" "task scf"
run 0 "$fathom" scf semi.nw
[ -n "$(kept)" ] || fail "semidirect keeps nothing"

# Not converged: status 1, said so; `ignore` goes on.
deck short.nw "start short" "scf; maxiter 1; end" "task scf"
run 1 "$fathom" scf short.nw
grep -q "not converged after 3 iterations" "$work/err" || fail "no sentence"
grep -q "failed to converge" "$work/out" || fail "the printout does not say so"
run 1 "$fathom" scf short.nw --json
python3 -c 'import json, sys; j = json.load(open(sys.argv[1]))
assert j["converged"] is False and "not converged" in j["error"] and j["tasks"][0]["converged"] is False' \
    "$work/out" || fail "JSON of a failure"
deck ignore.nw "start ignore" "scf; maxiter 1; end" "task scf energy ignore" "scf; maxiter 60; end" "task scf"
run 0 "$fathom" scf ignore.nw
grep -q "going on" "$work/err" || fail "the ignored failure is not mentioned"

# Refused before anything is computed: status 2, one sentence, no energy.
refused() # refused WORDS: the deck bad.nw
{
    run 2 "$fathom" scf bad.nw
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "not one sentence"
    grep -q "$1" "$work/err" || fail "not a word of \"$1\""
    if grep -q "energy =" "$work/out"; then fail "something was computed"; fi
}
deck bad.nw "start bad" "scf; thersh 1e-7; end" "task scf"
refused 'bad.nw:[0-9]*: .*thersh'
deck bad.nw "start bad" "scf; triplet; rhf; end" "dft; xc nonsense; end" "task dft"
refused nonsense
deck bad.nw "start bad" "scf; vectors input gone.movecs; end" "task scf"
refused "no vectors file gone.movecs"
deck bad.nw "start bad" "scf; doublet; end" "task scf"
refused "multiplicity"
deck bad.nw "permanent_dir $work/nowhere" "task scf"
refused 'bad.nw:1: permanent_dir ".*nowhere".*: No such file'
deck bad.nw "start bad" "scf; vectors output gone/v.movecs; end" "task scf"
refused 'bad.nw:10: .*gone/v.movecs .*: No such file'
mkdir folder.movecs
deck bad.nw "start folder" "task scf"
refused 'bad.nw:10: .*folder.movecs .*: Is a directory'
run 2 "$fathom" scf nowhere.nw
run 2 "$fathom" scf
run 2 "$fathom" scf good.nw good.nw
run 2 "$fathom" scf good.nw --threads -1
run 0 "$fathom" scf --help

# Foreign and damaged vectors.
deck from.nw "start from" "scf; vectors input v.movecs; end" "task scf"
head -c 1000 good.movecs >v.movecs
run 2 "$fathom" scf from.nw
grep -q "v.movecs: cut short" "$work/err" || fail "truncated vectors"
printf '\032\000\000\000basissum              ' >v.movecs
run 2 "$fathom" scf from.nw
grep -q "not a vectors file" "$work/err" || fail "foreign vectors"
cp good.movecs v.movecs
run 0 "$fathom" scf from.nw

# Killed at any moment, restarted: the same energy.
deck long.nw "start long" "scf; thresh 1e-9; end" "task scf"
sed 's/^start/restart/' long.nw >again.nw
run 0 "$fathom" scf long.nw
straight=$(energy SCF)
for after in 0.05 0.1 0.2; do
    rm -f long.movecs
    "$fathom" scf long.nw >"$work/log" 2>&1 &
    sleep "$after"
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    run 0 "$fathom" scf again.nw
    close_to "$(energy SCF)" "$straight" 1e-9
done

# What cannot be written is said.
chmod 555 . 2>/dev/null
if ! touch probe 2>/dev/null; then
    run 2 "$fathom" scf long.nw
    grep -q "long.movecs" "$work/err" || fail "the vectors file is not named"
fi
chmod 755 .
echo "fathom scf behaves"
