/* SPDX-License-Identifier: Apache-2.0 */
/* A deck as words, line by line.
 *
 *     text ─comments #, continuation \, separators ;, quotes "─> lines of words
 *
 * A line here is a statement: what `;` or the end of a physical line ends.  CRLF,
 * tabs and any case are fine; words keep the case they were written in.
 *
 * Every failure begins with the file and the physical line: "w1.nw:12: ...".
 *
 * Ownership: the reader owns copies of all words; words stay valid until
 * fm__words_fini. */
#ifndef FM_CHEM_INPUT_WORDS_H
#define FM_CHEM_INPUT_WORDS_H

#include <stddef.h>

#include "base/status.h"

typedef struct {
    const char *text; /* NUL-terminated, without quotes */
    int         line; /* of the file, from 1 */
    int         is_first;
} fm__word;

typedef struct {
    const char *file; /* borrowed */
    char       *text; /* owned: the words, each with its NUL */
    fm__word   *word; /* [n_word] owned */
    int         n_word, cap;
    int         at;   /* the next word */
    int         from; /* first word of the current line */
    int         to;   /* behind its last */
} fm__words;

fm_status fm__words_split(fm__words *out, const char *file, const char *text, size_t n);
void      fm__words_fini(fm__words *w);

int fm__same(const char *a, const char *b); /* case does not matter */

/* Move to the next line; 0 at the end of the deck. */
int fm__next_line(fm__words *w);
/* Physical line of the word read last. */
int fm__line(const fm__words *w);

/* The next word of the current line, or NULL; peek does not move on. */
const char *fm__next(fm__words *w);
const char *fm__peek(const fm__words *w);
/* Take the next word if it is `name`. */
int fm__take(fm__words *w, const char *name);
/* Take the next word if it is a number (Fortran's D exponent is one, too). */
int fm__take_real(fm__words *w, double *x);
int fm__take_int(fm__words *w, int *i);

/* Take what must be there; `what` names it for the message. */
fm_status fm__need_word(fm__words *w, const char **out, const char *what);
fm_status fm__need_real(fm__words *w, double *out, const char *what);
fm_status fm__need_positive(fm__words *w, double *out, const char *what);
fm_status fm__need_int(fm__words *w, int *out, int least, int most, const char *what);
fm_status fm__need_text(fm__words *w, char *out, size_t n, const char *what);
/* Nothing may follow on this line. */
fm_status fm__need_end(fm__words *w);

/* FM_E_FORMAT with file and line in front of the sentence. */
fm_status fm__bad(const fm__words *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));
/* Put file and line in front of the sentence another module left. */
fm_status fm__bad_as(const fm__words *w, fm_status rc);

#endif
