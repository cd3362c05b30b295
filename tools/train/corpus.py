#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plain English for training, from the free packages installed on this machine.

    corpus.py OUT.txt.xz [--megabytes 60]

Manual pages, README files, HTML manuals and the doc strings of Python modules are free documents;
their paragraphs of prose are taken, each once, and everything that looks like code, a table or a
list is left.  The result is input to training and is not kept in the repository.
"""
import argparse
import gzip
import html
import lzma
import pathlib
import random
import re

ROFF_FONT = re.compile(r"\\f(\(..|\[[^]]*\]|.)")
ROFF_ESCAPE = {
    r"\-": "-", r"\(aq": "'", r"\(lq": '"', r"\(rq": '"', r"\(dq": '"', r"\&": "", r"\(em": " - ",
    r"\(bu": "", r"\e": "\\", r"\ ": " ", r"\'": "'", r"\(cq": "'", r"\(oq": "'", r"\/": "",
    r"\,": "", r"\|": "", r"\c": "", r"\(co": "(c)", r"\s0": ""
}
INLINE_MACROS = (".B ", ".I ", ".BR ", ".IR ", ".BI ", ".IB ", ".RB ", ".RI ", ".Nm ", ".Ar ",
                 ".Fa ", ".Xr ", ".Em ", ".Dq ", ".Va ", ".Vt ")
BLOCK = re.compile(r"</?(p|div|li|td|th|tr|h\d|pre|ul|ol|table|dd|dt|br|section)\b[^>]*>", re.I)
PROSE = re.compile(r"^[A-Z\"'(`][A-Za-z0-9 ,.;:'\"()/!?_`*%+&$@=#-]+[.!?:)\"']$")
DOC_STRING = re.compile(r'"""(.*?)"""', re.S)


def read(path):
    try:
        data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    except OSError:
        return ""
    return data.decode("utf-8", "ignore")


def roff_paragraphs(text):
    """Running text of a manual page: macros end a paragraph unless they only change the font."""
    for escape, plain in ROFF_ESCAPE.items():
        text = text.replace(escape, plain)
    text = ROFF_FONT.sub("", text)
    words = []
    for line in text.split("\n"):
        if line.startswith(INLINE_MACROS):
            words.append(line.split(" ", 1)[1].replace('"', ""))
        elif line.startswith((".", "'")) or not line.strip():
            yield " ".join(words)
            words = []
        else:
            words.append(line.strip())
    yield " ".join(words)


def html_paragraphs(text):
    text = re.sub(r"<(pre|script|style)\b.*?</\1>", "\n\n", text, flags=re.S | re.I)
    text = re.sub(r"<[^>]+>", "", BLOCK.sub("\n\n", text))
    yield from html.unescape(text).split("\n\n")


def paragraphs(path):
    text = read(path)
    name = path.name.removesuffix(".gz")
    if re.search(r"\.[1-9][a-z]*$", name):
        yield from roff_paragraphs(text)
    elif name.endswith((".html", ".htm")):
        yield from html_paragraphs(text)
    elif name.endswith(".py"):
        for doc in DOC_STRING.findall(text):
            yield from doc.split("\n\n")
    else:
        yield from text.split("\n\n")


def is_prose(p):
    if not 60 <= len(p) <= 1500 or not PROSE.match(p):
        return False
    words = p.split()
    plain = sum(w.strip(".,;:()\"'!?").isalpha() for w in words)
    return plain > 0.8 * len(words) and len(words) > 8


def documents():
    for root, pattern in (("/usr/share/doc", "**/*"), ("/usr/share/man", "man[1-8]/*.gz"),
                          ("/usr/share/perl", "**/*.pod"), ("/usr/lib", "**/*.py")):
        for path in sorted(pathlib.Path(root).glob(pattern)):
            if path.is_file() and not path.name.startswith(("changelog", "copyright")):
                yield path


def collect(limit):
    seen, kept, size = set(), [], 0
    for path in documents():
        page = []
        for raw in paragraphs(path):
            p = re.sub(r"\s+", " ", raw).strip()
            if is_prose(p) and hash(p) not in seen:
                seen.add(hash(p))
                page.append(p)
                size += len(p)
        if page:
            kept.append("\n\n".join(page))
        if size > limit:
            break
    random.Random(7).shuffle(kept)
    return kept


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("out")
    ap.add_argument("--megabytes", type=float, default=60)
    a = ap.parse_args()
    kept = collect(a.megabytes * 1e6)
    text = "\n\f\n".join(kept)  # a form feed between documents
    lzma.open(a.out, "wt", preset=2, encoding="utf-8").write(text)
    print(f"{len(kept)} documents, {len(text) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
