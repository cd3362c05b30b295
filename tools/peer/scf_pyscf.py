# SPDX-License-Identifier: Apache-2.0
"""scf_pyscf.py DECK: RHF and then B3LYP of a deck's geometry in cc-pVTZ with PySCF, direct, for timing.

Reads the atom lines of the deck only; thresholds are those of the w decks (orbital gradient 1e-7 for
RHF, NWChem's defaults for DFT) and the grid has NWChem's `fine` sizes with PySCF's own partition."""
import sys

from pyscf import dft, gto, scf

atoms = [w[:4] for w in map(str.split, open(sys.argv[1])) if len(w) == 4 and w[0] in ("O", "H")]
mol = gto.M(atom="\n".join(map(" ".join, atoms)), basis="cc-pvtz", verbose=0)

hf = scf.RHF(mol)
hf.max_memory = 1  # no integrals in memory
hf.conv_tol, hf.conv_tol_grad = 1e-9, 1e-7
print("Total SCF energy = %.9f" % hf.kernel(), "converged" if hf.converged else "NOT converged", flush=True)

ks = dft.RKS(mol, xc="b3lypg")  # with VWN(RPA), as NWChem
ks.max_memory = 1
ks.conv_tol, ks.conv_tol_grad = 1e-6, 5e-4
ks.grids.atom_grid = {"O": (70, 590), "H": (60, 590)}
print("Total DFT energy = %.9f" % ks.kernel(dm0=hf.make_rdm1()), "converged" if ks.converged else "NOT converged")
