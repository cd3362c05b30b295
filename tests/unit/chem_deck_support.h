/* SPDX-License-Identifier: Apache-2.0 */
/* Decks as text in tests of the deck reader. */
#ifndef FM_TESTS_UNIT_CHEM_DECK_SUPPORT_H
#define FM_TESTS_UNIT_CHEM_DECK_SUPPORT_H

#include "chem/input/deck.h"

/* A hydrogen molecule in STO-3G: the deck that others are built around. */
#define H2_GEOMETRY "geometry; h 0 0 0; h 0 0 0.74; end\n"
#define H2_BASIS "basis; * library sto-3g; end\n"
#define H2 H2_GEOMETRY H2_BASIS

/* Read a deck that must be right; its name is "deck". */
fm_deck good_deck(const char *text);
/* Read a deck that must be wrong and whose sentence must contain `why`. */
void bad_deck(const char *text, const char *why);
void near_to(double got, double want, double tol);

#endif
