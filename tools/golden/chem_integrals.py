# SPDX-License-Identifier: Apache-2.0
"""Writes tests/unit/chem_integral_golden.h: integrals over the shells of
tests/unit/chem_integral_shells.h as PySCF computes them.

    pip install pyscf; python tools/golden/chem_integrals.py > tests/unit/chem_integral_golden.h

Of every block of numbers x only its print is stored, sum_i x_i cos(i)."""
import numpy as np
from pyscf import gto

ATOMS = [((0.0, 0.0, 0.0), [[0, [13.0, 0.02, -0.01], [1.9, 0.3, -0.2], [0.4, 0.7, 1.1]],
                            [1, [3.1, 0.4], [0.6, 0.7]], [2, [0.9, 1.0]]]),
         ((0.7, -0.4, 1.1), [[0, [2.0e3, 1.0]], [3, [1.2, 1.0]], [4, [0.8, 1.0]]]),
         ((12.0, 3.0, -5.0), [[0, [0.02, 1.0]], [1, [0.3, 1.0]], [2, [0.05, 1.0]]]),
         ((0.2, 0.1, -0.3), [[2, [4.0, 0.3, 0.8], [0.7, 0.8, -0.5]], [4, [2.0, 1.0]]])]


def molecule(cart):
    atom = [("H%d" % i, xyz) for i, (xyz, _) in enumerate(ATOMS)]
    basis = {"H%d" % i: shells for i, (_, shells) in enumerate(ATOMS)}
    return gto.M(atom=atom, basis=basis, unit="Bohr", cart=cart, verbose=0)


def scale(mol):
    """PySCF gives x^l of a cartesian shell the norm sqrt(4 pi / (2l + 1)); here it is 1."""
    f = []
    for i in range(mol.nbas):
        l = mol.bas_angular(i)
        n = mol.bas_nctr(i) * ((l + 1) * (l + 2) // 2 if mol.cart else 2 * l + 1)
        f += [np.sqrt((2 * l + 1) / (4 * np.pi)) if mol.cart and l > 1 else 1.0] * n
    return np.array(f)


def fingerprint(x):
    x = np.asarray(x).ravel()
    return float(np.dot(np.cos(np.arange(x.size)), x))


def pairs(mol, f):
    where = mol.ao_loc_nr()
    eri = mol.intor("int2e")
    eri = np.einsum("ijkl,i,j,k,l->ijkl", eri, f, f, f, f)
    part = [slice(where[i], where[i + 1]) for i in range(mol.nbas)]
    for i in range(mol.nbas):
        for j in range(i + 1):
            yield sum(fingerprint(eri[part[i], part[j], part[k], part[l]])
                      for k in range(mol.nbas) for l in range(k + 1))


def row(name, values):
    print("static const double %s[] = {" % name)
    values = ["%.17g," % v for v in values]
    for k in range(0, len(values), 4):
        print("    " + " ".join(values[k:k + 4]))
    print("};")


print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* Written by tools/golden/chem_integrals.py from PySCF; not to be edited. */")
for cart in (True, False):
    mol = molecule(cart)
    f = scale(mol)
    ff = np.outer(f, f)
    kind = "cartesian" if cart else "pure"
    with mol.with_common_orig((0, 0, 0)):
        r = mol.intor("int1e_r")
    one = [mol.intor("int1e_ovlp"), mol.intor("int1e_kin"), mol.intor("int1e_nuc"), r[0], r[1], r[2]]
    row("one_electron_" + kind, [fingerprint((m * ff)[i]) for m in one for i in range(len(f))])
    row("eri_" + kind, pairs(mol, f))
