/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that come through a router: their streams are written in frames with the
 * tokens of each, and a stream that another server began is gone on with.
 *
 * The tokens that the client has are replayed: the engine gives their events first,
 * without computing them, and each answer takes them as it takes any.  When the last
 * of an answer has come, its dialect writes what it would have sent so far, and that is
 * thrown away: from there on it is where the other server was. */
#include <string.h>

#include "llm/relay/frame.h"
#include "llm/serve/loop/serve_internal.h"

int fm__relay_begin(fm__call *c, char *body, size_t *body_len, const char **why)
{
    fm__relay      *r = &c->relay;
    fm_relay_resume resume;
    const char     *stream = fm_exchange_header(c->x, FM_RELAY_STREAM_HEADER);
    const char     *began  = fm_exchange_header(c->x, FM_RELAY_RESUME_HEADER);
    if (!stream) return 1;
    *why = "the headers of the router in front are malformed";
    if (!fm_relay_stream_read(&r->stream, stream)) return 0;
    r->is_on   = 1;
    c->created = r->stream.created;
    fm_relay_name(c->name, sizeof c->name, c->dialect->id_prefix, r->stream.key);
    if (!began) return 1;
    if (!fm_relay_resume_read(&resume, began) || resume.n_byte > *body_len) return 0;
    if (fm_relay_tokens_read(&r->begun, body, resume.n_byte) != FM_OK) return 0;
    r->n_event = resume.n_event;
    *body_len -= resume.n_byte;
    if (body) memmove(body, body + resume.n_byte, *body_len + 1);
    return 1;
}

void fm__relay_fini(fm__relay *r)
{
    fm_relay_tokens_fini(&r->begun);
    fm_relay_tokens_fini(&r->fresh);
}

void fm__relay_name_ask(fm__call *c)
{
    if (!c->relay.is_on) return;
    c->ask->has_key = 1;
    c->ask->key     = c->relay.stream.key;
    c->ask->begun   = c->relay.begun;
    c->relay.begun  = (fm_relay_tokens){0};
}

int fm__relay_replays(fm__call *c, fm__answer *a, const fm_event *ev)
{
    const size_t n_begun = fm_relay_tokens_count(&c->ask->begun, a->slot);
    if (!c->ask->stream || ev->token < 0 || (size_t)ev->n_output > n_begun) return 0;
    if ((size_t)ev->n_output < n_begun && ev->finish == FM_FINISH_NONE) return 1;
    fm_str sent_before = {0};
    c->dialect->say(c, a, &sent_before);
    fm_str_fini(&sent_before);
    c->n_event = c->relay.n_event;
    return 1;
}

void fm__relay_note(fm__call *c, const fm__answer *a, const fm_event *ev)
{
    if (c->relay.is_on && c->ask->stream && ev->token >= 0)
        fm_relay_tokens_add(&c->relay.fresh, a->slot, ev->token);
}

fm_status fm__relay_write(fm__call *c, const fm_str *bytes, int is_error)
{
    if (!c->relay.is_on) return fm_exchange_write(c->x, bytes->text, bytes->len);
    fm_str frame = {0};
    fm_relay_frame_write(&frame, &c->relay.fresh, is_error ? FM_RELAY_ERROR : c->n_event,
                         bytes->text, bytes->len);
    fm_relay_tokens_clear(&c->relay.fresh);
    const fm_status rc = fm_exchange_write(c->x, frame.text, frame.len);
    fm_str_fini(&frame);
    return rc;
}
