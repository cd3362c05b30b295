#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws loss.csv as an SVG.

    plot_loss.py loss.csv OUT.svg
"""
import csv
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 56, 16, 28, 44
CURVES = (("loss", "next token", "#1f5fa8"), ("mtp_loss", "MTP layer against the main model",
                                              "#c05621"))
TICKS = (0.2, 0.5, 1, 2, 5, 10)


def smooth(values, keep=0.9):
    out, mean, weight = [], 0.0, 0.0
    for v in values:
        mean, weight = keep * mean + (1 - keep) * v, keep * weight + (1 - keep)
        out.append(mean / weight)
    return out


def main():
    rows = list(csv.DictReader(open(sys.argv[1])))
    tokens = [float(r["tokens"]) / 1e6 for r in rows]
    curves = {name: smooth([float(r[name]) for r in rows]) for name, _, _ in CURVES}
    low = min(min(c) for c in curves.values()) * 0.9
    high = max(max(c) for c in curves.values()) * 1.1
    x = lambda t: LEFT + t / tokens[-1] * (WIDTH - LEFT - RIGHT)
    y = lambda v: TOP + math.log(high / v) / math.log(high / low) * (HEIGHT - TOP - BOTTOM)

    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12" fill="#333">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    ]
    for v in (t for t in TICKS if low < t < high):
        svg.append(f'<path d="M{LEFT} {y(v):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(v) + 4:.1f}" text-anchor="end">{v:g}</text>')
    for t in range(0, int(tokens[-1]) + 1, 100):
        svg.append(
            f'<text x="{x(t):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{t}</text>')
    svg.append(
        f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">million tokens</text>'
    )
    svg.append(f'<text x="{LEFT}" y="16">loss per token (nats)</text>')
    for i, (name, label, colour) in enumerate(CURVES):
        path = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in zip(tokens, curves[name]))
        svg.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            f'<text x="{WIDTH - RIGHT}" y="{TOP + 14 + 16 * i}" text-anchor="end" fill="{colour}">{label}</text>'
        )
    open(sys.argv[2], "w").write("\n".join(svg) + "\n</svg>\n")


if __name__ == "__main__":
    main()
