# SPDX-License-Identifier: Apache-2.0
"""Sums and differences digit by digit, as on paper; sorting by repeated selection."""
from sample import pick, sample


def spaced(n):
    return " ".join(str(n))


def add_steps(a, b):
    x, y = str(a)[::-1], str(b)[::-1]
    lines, digits, carry = [f"{spaced(a)} plus {spaced(b)}."], [], 0
    for i in range(max(len(x), len(y))):
        parts = [s[i] for s in (x, y) if i < len(s)] + (["1"] if carry else [])
        total = sum(map(int, parts))
        carry = total // 10
        digits.append(str(total % 10))
        lines.append(f"{' + '.join(parts)} = {total}: write {total % 10}, carry {carry}.")
    if carry:
        digits.append("1")
    lines.append(f"Result: {' '.join(reversed(digits))}.")
    return "\n".join(lines)


def subtract_steps(a, b):
    """a >= b >= 0"""
    x, y = str(a)[::-1], str(b)[::-1]
    lines, digits, borrow = [f"{spaced(a)} minus {spaced(b)}."], [], 0
    for i, top in enumerate(x):
        take = int(y[i]) if i < len(y) else 0
        left = int(top) - borrow - take
        parts = f"{top}{' - 1' if borrow else ''} - {take}"
        borrow = int(left < 0)
        digits.append(str(left + 10 * borrow))
        lines.append(f"{parts} = {left}: write {digits[-1]}, borrow {borrow}.")
    shown = " ".join(reversed(digits))
    lines.append(f"Digits: {shown}. Result: {spaced(a - b)}.")
    return "\n".join(lines)


def difference_steps(a, b):
    if a >= b:
        return subtract_steps(a, b)
    return f"{a} is less than {b}, so the result is negative.\n" + subtract_steps(b, a)


def ask_sum(rng, a, b):
    return pick(rng, f"What is {a} + {b}?", f"{a} + {b}", f"{a}+{b}", f"{a}+{b}=",
                f"Add {a} and {b}.", f"What is {a} plus {b}?", f"Compute {a} + {b}.",
                f"Please add {a} and {b}.", f"How much is {a} + {b}?", f"what's {a}+{b}?",
                f"Calculate {a} plus {b}", f"{a} + {b} = ?", f"Tell me the sum of {a} and {b}.")


def ask_difference(rng, a, b):
    return pick(rng, f"What is {a} - {b}?", f"{a} - {b}", f"{a}-{b}", f"Subtract {b} from {a}.",
                f"What is {a} minus {b}?", f"Compute {a} - {b}.", f"How much is {a} - {b}?",
                f"what's {a}-{b}?", f"Calculate {a} minus {b}", f"{a} - {b} = ?",
                f"Take {b} from {a}.")


def number(rng, digits):
    return rng.randint(10 ** (digits - 1) if digits > 1 else 0, 10 ** digits - 1)


def addition(rng, task, la, lb):
    a, b = number(rng, la), number(rng, lb)
    check = {"kind": "number", "value": a + b}
    return sample(task, f"{a}+{b}", ask_sum(rng, a, b), add_steps(a, b), f"{a} + {b} = {a + b}",
                  check)


def subtraction(rng, task, la, lb):
    a, b = number(rng, la), number(rng, lb)
    if a < b and rng.random() < 0.8:
        a, b = b, a
    check = {"kind": "number", "value": a - b}
    return sample(task, f"{a}-{b}", ask_difference(rng, a, b), difference_steps(a, b),
                  f"{a} - {b} = {a - b}", check)


def add2(rng):
    return addition(rng, "add2", 2, 2)


def add3(rng):
    return addition(rng, "add3", rng.choice((1, 2, 3, 3, 3)), rng.choice((1, 2, 3, 3)))


def sub2(rng):
    return subtraction(rng, "sub2", 2, 2)


def sub3(rng):
    return subtraction(rng, "sub3", 3, rng.choice((1, 2, 3, 3)))


def running_sum(rng):
    """A follow-up that needs the last result."""
    a, b, c = number(rng, 2), number(rng, 2), number(rng, rng.choice((1, 2)))
    total, plus = a + b, rng.random() < 0.6
    gap = pick(rng, "", "\n\n")
    before = [{"role": "user", "content": ask_sum(rng, a, b)},
              {"role": "assistant", "content": f"{gap}{a} + {b} = {total}"}]
    if plus:
        user = pick(rng, f"Add {c} to that.", f"And plus {c}?", f"Now add {c}.", f"plus {c}")
        steps, result, sign = add_steps(total, c), total + c, "+"
    else:
        user = pick(rng, f"Subtract {c} from that.", f"And minus {c}?", f"Now subtract {c}.",
                    f"minus {c}")
        steps, result, sign = difference_steps(total, c), total - c, "-"
    return sample("follow_up",
                  f"{a}+{b}|{total}{sign}{c}",
                  user,
                  f"The last result was {total}.\n{steps}",
                  f"{total} {sign} {c} = {result}", {"kind": "number", "value": result},
                  before=before)


def selection_steps(items, order, word):
    left, lines = list(items), []
    for item in order:
        left.remove(item)
        lines.append(f"{word} is {item}. Left: {', '.join(map(str, left)) or 'nothing'}.")
    return "\n".join(lines)


def sort_numbers(rng):
    items = rng.sample(range(1, rng.choice((20, 100, 100, 1000))), rng.randint(3, 6))
    down = rng.random() < 0.35
    order = sorted(items, reverse=down)
    listed = pick(rng, ", ", ", ", " ").join(map(str, items))
    if down:
        user = pick(rng, f"Sort from largest to smallest: {listed}",
                    f"Sort in descending order: {listed}",
                    f"Sort these numbers in descending order: {listed}")
    else:
        user = pick(rng, f"Sort these numbers: {listed}", f"Sort: {listed}",
                    f"Sort in ascending order: {listed}", f"Put in order: {listed}",
                    f"Please sort {listed}.", f"sort {listed}")
    answer = ", ".join(map(str, order))
    return sample("sort", user, user,
                  selection_steps(items, order, "Largest" if down else "Smallest"), answer,
                  {"kind": "text", "value": answer})
