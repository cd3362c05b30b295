#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scf.sh PROGRAM RANKS...: Hartree-Fock and DFT over ranks and threads give the same
# bits in every iteration as one rank with one thread.
. "$(dirname "$0")/../e2e/lib.sh"
cat >"$work/deck.nw" <<'END'
start a
geometry noautosym
 O 0 0 0.1173
 H 0 0.7572 -0.4692
 H 0.1 -0.7572 -0.4692
end
basis spherical
 * library 6-31g**
end
scf; thresh 1e-7; end
task scf
dft; xc b3lyp; end
task dft
charge 1
scf; doublet; uhf; end
task scf
scf; doublet; rohf; vectors input atomic; end
task scf
END
cd "$work"

energies() { grep '"\(energy\|gradient\|electrons_integrated\)":' "$1"; } # of results and iterations

run 0 "$fathom" scf deck.nw --json --threads 1
energies "$work/out" >want
[ "$(wc -l <want)" -gt 50 ] || fail "too few numbers in the result"
for threads in 2 3; do
    run 0 "$fathom" scf deck.nw --json --threads "$threads"
    energies "$work/out" >got
    cmp want got || fail "$threads threads move bits: $(diff want got | head -4)"
done
for ranks in "$@"; do
    for threads in 1 2; do
        run 0 "$here/mpirun.sh" "$ranks" "$fathom" scf deck.nw --json --threads "$threads"
        energies "$work/out" >got
        cmp want got || fail "$ranks ranks of $threads threads move bits: $(diff want got | head -4)"
        grep -q "\"ranks\": $ranks" "$work/out" || fail "not $ranks ranks"
    done
done

# A density that is averaged over the point group: rank 0 sends its natural orbitals.
printf 'geometry; N 0 0 0; O 0.3 0.5 1; end\nbasis; * library 3-21g; end\ndft; mult 2; end\ntask dft\n' >no.nw
run 0 "$fathom" scf no.nw --json --threads 1
energies "$work/out" >want
run 0 "$here/mpirun.sh" 2 "$fathom" scf no.nw --json --threads 1
energies "$work/out" >got
cmp want got || fail "the mean density moves bits: $(diff want got | head -4)"

# Without JSON: one printout, one table row a rank.
run 0 "$here/mpirun.sh" 2 "$fathom" scf deck.nw --threads 1
[ "$(grep -c 'Total DFT energy' "$work/out")" -eq 1 ] || fail "not one result"
[ "$(grep -c '^ *[01] .* 2\?[0-9]* *[0-9.]*e+' "$work/out")" -eq 2 ] || fail "not two rows of ranks"

# A deck that is wrong, and one that does not converge, end all ranks with one sentence.
printf 'geometry; H 0 0 0; end\nbasis; * library sto-3g; end\nscf; dublet; end\ntask scf\n' >bad.nw
run 2 "$here/mpirun.sh" 2 "$fathom" scf bad.nw
[ "$(grep -c '^fathom scf: ' "$work/err")" -eq 1 ] || fail "not one sentence"
sed 's/thresh 1e-7/thresh 1e-7; maxiter 2/' deck.nw >short.nw
run 1 "$here/mpirun.sh" 2 "$fathom" scf short.nw
[ "$(grep -c 'not converged after 6 iterations' "$work/err")" -eq 1 ] || fail "not one sentence"
echo "the same bits on any ranks and threads"
