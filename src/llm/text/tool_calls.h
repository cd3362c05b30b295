/* SPDX-License-Identifier: Apache-2.0 */
/* Tool calls in streamed text -> text, names and arguments, piece by piece.
 *
 *     text <calls begin><call begin>NAME…ARGUMENTS<call end>…<calls end> text
 *
 * How the text is cut into pushes changes nothing but where pieces are cut:
 * joined, they are the same.  White space before the first call and around
 * arguments is dropped.  A call whose head makes no sense is text; one whose head is
 * cut off by the end of the text is left out; arguments are passed on as they are,
 * valid JSON or cut off or not. */
#ifndef FM_LLM_TEXT_TOOL_CALLS_H
#define FM_LLM_TEXT_TOOL_CALLS_H

#include "base/str.h"

typedef enum {
    FM_TOOLS_V3,  /* V3 and R1: function<sep>NAME, arguments in a JSON fence */
    FM_TOOLS_V31, /* NAME<sep>ARGUMENTS */
    FM_TOOLS_KIMI,
} fm_tool_style;

typedef enum {
    FM_TOOL_TEXT,      /* outside of calls */
    FM_TOOL_NAME,      /* a call begins; text is the function's whole name */
    FM_TOOL_ARGUMENTS, /* a piece of its arguments */
} fm_tool_piece;

/* `index` counts the calls.  `id` is the model's own name of the call (Kimi)
 * or "", given with FM_TOOL_NAME. */
typedef void fm_tool_sink(void *ctx, fm_tool_piece kind, int index, const char *id,
                          const char *text, size_t len);

typedef struct {
    fm_tool_style style;
    fm_tool_sink *sink;
    void         *ctx;
    /* Is there such a function?  A call to an unknown one is left out.  NULL: all are known. */
    int (*known)(void *ctx, const char *name);
    int    n_call;
    int    dropping; /* inside a call to an unknown function */
    enum { FM_TOOLS_IN_TEXT, FM_TOOLS_BETWEEN, FM_TOOLS_IN_HEAD, FM_TOOLS_IN_ARGUMENTS } at;
    int    began;    /* arguments have begun: what comes first is no white space */
    fm_str held;
} fm_tool_calls;

void fm_tool_calls_init(fm_tool_calls *t, fm_tool_style style, fm_tool_sink *sink, void *ctx);
void fm_tool_calls_fini(fm_tool_calls *t);
void fm_tool_calls_push(fm_tool_calls *t, const char *text, size_t len);
void fm_tool_calls_end(fm_tool_calls *t);

/* Can a function of this name be called, and its name be read from the call?
 * Without blanks, control characters, '<' and '`', and up to 256 bytes. */
int fm_tool_calls_can_name(const char *name);

/* The text that makes the model call: up to the name, or with a name, up to
 * its arguments.  Appended to the prompt, it is also pushed here first. */
void fm_tool_calls_opening(fm_tool_style style, const char *name, fm_str *out);

/* The marks around calls, by fm_tool_mark. */
typedef enum {
    FM_MARK_CALLS_BEGIN,
    FM_MARK_CALL_BEGIN,
    FM_MARK_CALL_END,
    FM_MARK_CALLS_END,
    FM_MARK_SEPARATOR,
} fm_tool_mark;
const char *const *fm_tool_calls_marks(fm_tool_style style);

/* The mark that opens the section of calls. */
const char *fm_tool_calls_mark(fm_tool_style style);

#endif
