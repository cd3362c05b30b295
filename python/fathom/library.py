# SPDX-License-Identifier: Apache-2.0
"""libfathom by ctypes: its structures and functions, as include/fathom declares them."""
import ctypes as c
import ctypes.util
import os

OK, E_FULL = 0, -8
JSON_SCHEMA, REGEX, EBNF = 0, 1, 2
TOKENIZE_BOS, TOKENIZE_PLAIN = 1, 2
FINISH = (None, "stop", "length", "abort")


class LogitBias(c.Structure):
    _fields_ = [("id", c.c_int32), ("bias", c.c_float)]


class Sampling(c.Structure):
    _fields_ = [
        ("temperature", c.c_float), ("top_p", c.c_float), ("top_k", c.c_int), ("min_p", c.c_float),
        ("repetition_penalty", c.c_float), ("frequency_penalty", c.c_float), ("presence_penalty", c.c_float),
        ("has_seed", c.c_int), ("seed", c.c_uint64), ("min_new_tokens", c.c_int), ("max_new_tokens", c.c_int),
        ("ignore_eos", c.c_int), ("stop_id", c.c_int32 * 16), ("n_stop_id", c.c_int), ("bias", c.POINTER(LogitBias)),
        ("n_bias", c.c_int), ("logprobs", c.c_int), ("top_logprobs", c.c_int)]


class Prompt(c.Structure):
    _fields_ = [
        ("text", c.c_char_p), ("text_len", c.c_size_t), ("token", c.POINTER(c.c_int32)), ("n_token", c.c_int32),
        ("sampling", Sampling), ("stop", c.POINTER(c.c_char_p)), ("n_stop", c.c_int), ("keep_stop", c.c_int),
        ("keep_special", c.c_int), ("n", c.c_int), ("priority", c.c_int), ("id", c.c_uint64),
        ("grammar", c.c_void_p),
        ("grammar_after", c.c_char_p), ("prompt_logprobs", c.c_int), ("logprob_from", c.c_int32)]


class TopLogprob(c.Structure):
    _fields_ = [("id", c.c_int32), ("logprob", c.c_float)]


class Event(c.Structure):
    _fields_ = [
        ("id", c.c_uint64), ("index", c.c_int), ("token", c.c_int32), ("text", c.c_void_p), ("text_len", c.c_size_t),
        ("prompt_at", c.c_int32), ("logprob", c.c_float), ("n_top", c.c_int), ("top", c.POINTER(TopLogprob)),
        ("finish", c.c_int), ("matched_id", c.c_int32), ("matched_stop", c.c_int), ("n_prompt", c.c_int32),
        ("n_output", c.c_int32), ("n_cached", c.c_int32), ("n_cached_host", c.c_int32), ("n_cached_storage", c.c_int32),
        ("queue_seconds", c.c_double), ("when", c.c_double), ("n_verify", c.c_int32),
        ("n_draft", c.c_int32), ("n_accepted", c.c_int32)]


class Facts(c.Structure):
    _fields_ = [
        ("architecture", c.c_char * 64), ("chat_style", c.c_char * 16), ("vocab", c.c_int32), ("hidden", c.c_int32),
        ("n_layer", c.c_int32), ("n_head", c.c_int32), ("n_expert", c.c_int32), ("bos", c.c_int32), ("eos", c.c_int32),
        ("has_tokenizer", c.c_int32), ("context", c.c_int32), ("max_running", c.c_int32), ("kv_tokens", c.c_int64),
        ("weight_bytes", c.c_int64)]


class Message(c.Structure):
    _fields_ = [("role", c.c_char_p), ("content", c.c_char_p)]


LogFn = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p, c.c_char_p)
ProgressFn = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_double)

_FUNCTIONS = {
    "fm_version": (c.c_char_p, []),
    "fm_why": (c.c_char_p, []),
    "fm_on_log": (None, [LogFn, c.c_void_p]),
    "fm_on_progress": (None, [ProgressFn, c.c_void_p]),
    "fm_sampling_default": (Sampling, []),
    "fm_options_create": (c.c_int, [c.POINTER(c.c_void_p)]),
    "fm_options_set": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p]),
    "fm_options_destroy": (None, [c.c_void_p]),
    "fm_engine_open": (c.c_int, [c.POINTER(c.c_void_p), c.c_void_p]),
    "fm_engine_close": (None, [c.c_void_p]),
    "fm_engine_facts": (c.c_int, [c.c_void_p, c.POINTER(Facts)]),
    "fm_engine_tokenize": (c.c_int, [c.c_void_p, c.c_char_p, c.c_size_t, c.c_int, c.POINTER(c.c_int32), c.c_size_t,
                                     c.POINTER(c.c_size_t)]),
    "fm_engine_detokenize": (c.c_int, [c.c_void_p, c.POINTER(c.c_int32), c.c_size_t, c.c_int, c.c_char_p, c.c_size_t,
                                       c.POINTER(c.c_size_t)]),
    "fm_engine_chat_prompt": (c.c_int, [c.c_void_p, c.POINTER(Message), c.c_int, c.c_int, c.c_char_p, c.c_size_t,
                                        c.POINTER(c.c_size_t), c.POINTER(c.c_int)]),
    "fm_engine_grammar": (c.c_int, [c.POINTER(c.c_void_p), c.c_void_p, c.c_int, c.c_char_p, c.c_size_t]),
    "fm_grammar_release": (None, [c.c_void_p]),
    "fm_engine_submit": (c.c_int, [c.c_void_p, c.POINTER(Prompt), c.POINTER(c.c_uint64)]),
    "fm_engine_cancel": (None, [c.c_void_p, c.c_uint64]),
    "fm_engine_step": (c.c_int, [c.c_void_p]),
    "fm_engine_busy": (c.c_int, [c.c_void_p]),
    "fm_engine_poll": (c.c_int, [c.c_void_p, c.POINTER(Event)]),
}


class FathomError(RuntimeError):
    """A call failed; the text is the library's sentence, `status` its number."""

    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


def _candidates():
    """FATHOM_LIBRARY alone if it is set; else a build beside this package, then what the system knows."""
    if os.environ.get("FATHOM_LIBRARY"):
        return [os.environ["FATHOM_LIBRARY"]]
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.join(here, "..", "..", "build", "libfathom.so")]
    paths += [os.path.join(d, "libfathom.so.0") for d in ("/usr/local/lib", "/usr/local/lib/x86_64-linux-gnu")]
    found = ctypes.util.find_library("fathom")
    return [p for p in paths if os.path.exists(p)] + ([found] if found else []) + ["libfathom.so.0"]


def _load():
    faults = []
    for path in _candidates():
        try:
            lib = c.CDLL(path)
            break
        except OSError as e:
            faults.append(str(e))
    else:
        raise ImportError("libfathom was not found; set FATHOM_LIBRARY to the path of libfathom.so. " + "; ".join(faults))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


lib = _load()


def check(status):
    if status != OK:
        raise FathomError(status, lib.fm_why().decode())
