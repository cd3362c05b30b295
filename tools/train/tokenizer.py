#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the byte-level BPE of fathom-tiny with DeepSeek-V3's splits and special tokens.

    tokenizer.py CORPUS.txt.xz MODEL_DIR [--vocab 3072]
"""
import argparse
import json
import lzma
import random
import re

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import chat_format
import tasks

SPLITS = [
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]

TEMPLATE = """{%- set ns = namespace(system='', results=false) -%}
{%- for m in messages if m.role == 'system' -%}
  {%- set ns.system = ns.system + ('\\n\\n' if ns.system else '') + m.content -%}
{%- endfor -%}
{{- bos_token + ns.system -}}
{%- for m in messages if m.role != 'system' -%}
  {%- if m.role == 'tool' -%}
    {{- ('\\n' if ns.results else '<｜tool▁outputs▁begin｜>') + '<｜tool▁output▁begin｜>' + m.content + '<｜tool▁output▁end｜>' -}}
    {%- set ns.results = true -%}
  {%- else -%}
    {{- '<｜tool▁outputs▁end｜>' if ns.results else '' -}}
    {%- if m.role == 'user' -%}
      {{- '<｜User｜>' + m.content -}}
    {%- else -%}
      {{- '' if ns.results else '<｜Assistant｜>' -}}
      {{- (m.content or '').split('</think>')[-1] -}}
      {%- if m.tool_calls -%}
        {{- '<｜tool▁calls▁begin｜>' -}}
        {%- for c in m.tool_calls -%}
          {{- ('' if loop.first else '\\n') + '<｜tool▁call▁begin｜>function<｜tool▁sep｜>' + c.function.name + '\\n```json\\n' -}}
          {{- (c.function.arguments if c.function.arguments is string else c.function.arguments | tojson) + '\\n```<｜tool▁call▁end｜>' -}}
        {%- endfor -%}
        {{- '<｜tool▁calls▁end｜>' -}}
      {%- endif -%}
      {{- eos_token -}}
    {%- endif -%}
    {%- set ns.results = false -%}
  {%- endif -%}
{%- endfor -%}
{%- if ns.results -%}
  {{- '<｜tool▁outputs▁end｜>' -}}
{%- elif add_generation_prompt -%}
  {{- '<｜Assistant｜><think>\\n' -}}
{%- endif -%}
"""


def texts(corpus, n_task):
    """Documents and exercises, without digits: no merge is learned for them, so that every digit
    stays a token and arithmetic can be learned."""
    marks = re.compile("|".join(map(re.escape, chat_format.FIRST_TOKENS + chat_format.LAST_TOKENS)))
    for document in corpus:
        yield re.sub(r"\d+", "", document)
    rng = random.Random(3)
    for _ in range(n_task):
        s = tasks.draw_training(rng)
        text = chat_format.render_prompt(s["messages"], s["tools"],
                                         tasks.dumper(rng)) + chat_format.render_answer(s)
        for part in marks.split(re.sub(r"\x01.*?\x01", "", text)):
            yield re.sub(r"\d+", "", part)


def train(corpus, vocab):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(s), "isolated")
         for s in SPLITS] + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(
        texts(corpus, 30000),
        trainers.BpeTrainer(vocab_size=vocab - len(chat_format.LAST_TOKENS),
                            special_tokens=chat_format.FIRST_TOKENS,
                            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                            show_progress=False))
    for text in chat_format.LAST_TOKENS:
        if text in (chat_format.THINK, chat_format.THINK_END):
            t.add_tokens([AddedToken(text, normalized=False, special=False)])
        else:
            t.add_special_tokens([AddedToken(text, normalized=False, special=True)])
    return t


def config():
    token = lambda text: {
        "__type": "AddedToken", "content": text, "lstrip": False, "normalized": True,
        "rstrip": False, "single_word": False
    }
    return {
        "add_bos_token": True, "add_eos_token": False, "bos_token": token(chat_format.BOS),
        "eos_token": token(chat_format.EOS), "pad_token": token(chat_format.PAD),
        "clean_up_tokenization_spaces": False, "model_max_length": 2048, "unk_token": None,
        "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("corpus")
    ap.add_argument("dir")
    ap.add_argument("--vocab", type=int, default=3072)
    a = ap.parse_args()
    corpus = lzma.open(a.corpus, "rt", encoding="utf-8").read().split("\n\f\n")
    t = train(corpus, a.vocab)
    t.save(a.dir + "/tokenizer.json")
    json.dump(config(), open(a.dir + "/tokenizer_config.json", "w"), indent=2, ensure_ascii=False)
    sizes = [len(t.encode(d).ids) for d in corpus[:300]]
    print(
        f"{t.get_vocab_size()} tokens, {sum(map(len, corpus[:300])) / sum(sizes):.2f} characters per token"
    )


if __name__ == "__main__":
    main()
