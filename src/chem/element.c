/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/molecule.h"

#include <strings.h>

/* Masses of the most abundant isotope (for elements without a stable one, of the
 * longest-lived), in u, to the digits NWChem gives them. */
static const struct {
    char   symbol[3];
    char   name[12];
    double mass;
} element[FM_Z_MAX + 1] = {
    /* clang-format off */
    {"", "", 0},
    {"H",  "hydrogen",    1.007825}, {"He", "helium",      4.0026},
    {"Li", "lithium",     7.016},    {"Be", "beryllium",   9.01218},
    {"B",  "boron",      11.00931},  {"C",  "carbon",     12.0},
    {"N",  "nitrogen",   14.00307},  {"O",  "oxygen",     15.99491},
    {"F",  "fluorine",   18.9984},   {"Ne", "neon",       19.99244},
    {"Na", "sodium",     22.9898},   {"Mg", "magnesium",  23.98504},
    {"Al", "aluminium",  26.98154},  {"Si", "silicon",    27.97693},
    {"P",  "phosphorus", 30.97376},  {"S",  "sulfur",     31.97207},
    {"Cl", "chlorine",   34.96885},  {"Ar", "argon",      39.9624},
    {"K",  "potassium",  38.96371},  {"Ca", "calcium",    39.96259},
    {"Sc", "scandium",   44.95592},  {"Ti", "titanium",   47.948},
    {"V",  "vanadium",   50.944},    {"Cr", "chromium",   51.9405},
    {"Mn", "manganese",  54.938},    {"Fe", "iron",       55.9349},
    {"Co", "cobalt",     58.9332},   {"Ni", "nickel",     57.9353},
    {"Cu", "copper",     62.9298},   {"Zn", "zinc",       63.9291},
    {"Ga", "gallium",    68.9257},   {"Ge", "germanium",  73.9219},
    {"As", "arsenic",    74.9216},   {"Se", "selenium",   79.9165},
    {"Br", "bromine",    78.9183},   {"Kr", "krypton",    83.912},
    {"Rb", "rubidium",   84.9117},   {"Sr", "strontium",  87.9056},
    {"Y",  "yttrium",    88.9054},   {"Zr", "zirconium",  89.9043},
    {"Nb", "niobium",    92.906},    {"Mo", "molybdenum", 97.9055},
    {"Tc", "technetium", 97.9072},   {"Ru", "ruthenium", 101.9037},
    {"Rh", "rhodium",   102.9048},   {"Pd", "palladium", 105.9032},
    {"Ag", "silver",    106.90509},  {"Cd", "cadmium",   113.9036},
    {"In", "indium",    114.9041},   {"Sn", "tin",       117.9018},
    {"Sb", "antimony",  120.9038},   {"Te", "tellurium", 129.9067},
    {"I",  "iodine",    126.9004},   {"Xe", "xenon",     131.9042},
    /* clang-format on */
};

int fm_element_find(const char *symbol)
{
    for (int z = 1; z <= FM_Z_MAX; z++)
        if (!strcasecmp(symbol, element[z].symbol) || !strcasecmp(symbol, element[z].name))
            return z;
    return 0;
}

const char *fm_element_symbol(int z)
{
    FM_BUG_UNLESS(z >= 0 && z <= FM_Z_MAX);
    return z ? element[z].symbol : "bq";
}

double fm_element_mass(int z)
{
    FM_BUG_UNLESS(z >= 0 && z <= FM_Z_MAX);
    return element[z].mass;
}
