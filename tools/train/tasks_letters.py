# SPDX-License-Identifier: Apache-2.0
"""Letters of words.  A token hides its letters, so every exercise spells the word first."""
from sample import invented_word, letters, pick, sample
from words_tab import WORD

more_words = []  # training adds the words of its documents, so that more tokens are spelled


def a_word(rng):
    roll = rng.random()
    if more_words and rng.random() < 0.5:
        return rng.choice(more_words)
    if roll < 0.6:
        return rng.choice(WORD)
    if roll < 0.85:
        return invented_word(rng, rng.randint(2, 4))
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 8)))


def quoted(rng, word):
    return pick(rng, word, f'"{word}"', f"'{word}'", word)


def spelled(word):
    return f"Letters: {' '.join(word)}."


def reverse(rng):
    word = a_word(rng)
    q = quoted(rng, word)
    user = pick(rng, f"Reverse {q}.", f"Reverse the word {q}.", f"Write {q} backwards.",
                f"What is {q} backwards?", f"Spell {q} backwards", f"reverse {q}",
                f"Please reverse {q}.")
    back = word[::-1]
    return sample("reverse", word, user, f"{spelled(word)}\nBackwards: {' '.join(back)}.",
                  letters(back), {"kind": "text", "value": back})


def count(rng):
    word = a_word(rng)
    letter = rng.choice(word) if rng.random() < 0.85 else rng.choice("abcdefghijklmnopqrstuvwxyz")
    q = quoted(rng, word)
    user = pick(rng, f"How many {letter}'s are in {q}?", f"How many {letter} are in {q}?",
                f"Count the letter {letter} in {q}.", f"How often does {letter} occur in {q}?",
                f"How many times does the letter {letter} appear in {q}?",
                f"how many {letter}s in {q}?")
    n, steps = 0, []
    for c in word:
        n += c == letter
        steps.append(f"{c} {n}")
    think = f"{spelled(word)}\nCounting {letter}: {', '.join(steps)}."
    times = "once" if n == 1 else "twice" if n == 2 else f"{n} times"
    return sample("count", word, user, think, f"The letter {letter} occurs {times} in {word}: {n}",
                  {"kind": "number", "value": n})


def length(rng):
    word = a_word(rng)
    q = quoted(rng, word)
    user = pick(rng, f"How many letters does {q} have?", f"How long is the word {q}?",
                f"Count the letters of {q}.", f"How many letters are in {q}?")
    steps = ", ".join(f"{c} {i + 1}" for i, c in enumerate(word))
    return sample("count", word, user, f"{spelled(word)}\nCounting: {steps}.",
                  f"The word {word} has {len(word)} letters: {len(word)}",
                  {"kind": "number", "value": len(word)})


def spell(rng):
    word = a_word(rng)
    q = quoted(rng, word)
    user = pick(rng, f"Spell {q}.", f"Spell the word {q}.", f"How do you spell {q}?", f"spell {q}")
    answer = ", ".join(word)
    return sample("spell", word, user, spelled(word), answer, {"kind": "text", "value": answer})


def sort_words(rng):
    items = []
    for _ in range(rng.randint(3, 5)):  # distinct first letters decide
        word = rng.choice(WORD)
        if word[0] not in [w[0] for w in items]:
            items.append(word)
    order = sorted(items)
    listed = ", ".join(items)
    user = pick(rng, f"Sort these words: {listed}", f"Sort alphabetically: {listed}",
                f"Put in alphabetical order: {listed}", f"Sort the words {listed}.")
    firsts = ", ".join(f"{w} {w[0]}" for w in items)
    left, lines = list(items), [f"First letters: {firsts}."]
    for w in order:
        left.remove(w)
        lines.append(f"Next is {w}. Left: {', '.join(left) or 'nothing'}.")
    answer = ", ".join(order)
    return sample("sort", user, user, "\n".join(lines), answer, {"kind": "text", "value": answer})


def reverse_follow_up(rng):
    """Reverse another word, or the answer of the last turn."""
    word = a_word(rng)
    back = word[::-1]
    gap = pick(rng, "", "\n\n")
    other = a_word(rng)
    before = [{"role": "user", "content": f"Reverse {word}."},
              {"role": "assistant", "content": gap + back}]
    user = pick(rng, f"And {other}?", f"Now {other}.", f"And the word {other}?",
                f"{other} too, please.")
    return sample("follow_up",
                  f"{word}|{other}",
                  user,
                  f"{spelled(other)}\nBackwards: {' '.join(other[::-1])}.",
                  letters(other[::-1]), {"kind": "text", "value": other[::-1]},
                  before=before)
