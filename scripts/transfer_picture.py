#!/usr/bin/env python3
"""Draws README's picture: how the quickstart's reward rose without a GPU, and what its policies are worth on one.

  scripts/transfer_picture.py CURVES.csv TRANSFER.csv > docs/transfer.svg

example: scripts/transfer_picture.py bench/results/cpu_quickstart_curve.csv bench/results/h100_quickstart_transfer.csv > docs/transfer.svg

CURVES.csv is what learning_curve.py --csv wrote; TRANSFER.csv has a row a policy: measured reward with its 95% interval, and the
time model's reward for the same episodes. Needs Python alone.
"""
import argparse
import csv
import statistics
import sys

WIDTH, HEIGHT = 860, 300
CURVE = (52, 400)      # left and right edge of the curves
BARS = (560, 846)      # left and right edge of the bars: rewards on a GPU
TOP, BOTTOM = 40, 40
INK, FAINT, TRAINED, OTHER = "#57606a", "#8c959f55", "#2f81f7", "#8c959f"
SMOOTHED_OVER = 5      # steps; the mean of one step's 32 trajectories depends on the drawn problems


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def text(x, y, words, anchor="start", size=12, fill=INK, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}" {extra}>{words}</text>'


def draw_curves(rows):
    steps = [int(row["step"]) for row in rows]
    curves = [[float(row[name]) for row in rows] for name in rows[0] if name != "step"]
    curves = [[statistics.mean(c[max(0, i - SMOOTHED_OVER + 1):i + 1]) for i in range(len(c))] for c in curves]
    highest = max(map(max, curves)) * 1.05
    x = lambda step: CURVE[0] + (step - steps[0]) / (steps[-1] - steps[0]) * (CURVE[1] - CURVE[0])
    y = lambda value: HEIGHT - BOTTOM - value / highest * (HEIGHT - TOP - BOTTOM)
    out = [text(CURVE[0], 20, "Training without a GPU: mean reward by GRPO step", size=13)]
    for value in range(int(highest) + 1):
        out.append(f'<line x1="{CURVE[0]}" x2="{CURVE[1]}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="{FAINT}"/>')
        out.append(text(CURVE[0] - 8, y(value) + 4, value, "end"))
    for step in (steps[0], *range(50, steps[-1] + 1, 50)):
        out.append(text(x(step), HEIGHT - BOTTOM + 18, step, "middle"))
    for curve in curves:
        points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in zip(steps, curve))
        out.append(f'<polyline points="{points}" fill="none" stroke="{TRAINED}" stroke-width="1.6" stroke-opacity="0.8"/>')
    out.append(text((CURVE[0] + CURVE[1]) / 2, HEIGHT - 6, f"{len(curves)} seeds, means of {SMOOTHED_OVER} steps", "middle"))
    return out


def draw_rewards(rows):
    highest = 1.05 * max(float(row["high"]) for row in rows)
    x = lambda value: BARS[0] + value / highest * (BARS[1] - BARS[0])
    height = (HEIGHT - TOP - BOTTOM) / len(rows)
    out = [text(BARS[0] - 120, 20, "The same policies on an H100, on held-out problems", size=13)]
    for value in range(int(highest) + 1):
        out.append(f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{FAINT}"/>')
        out.append(text(x(value), HEIGHT - BOTTOM + 18, value, "middle"))
    for i, row in enumerate(rows):
        middle, measured = TOP + (i + 0.5) * height, float(row["measured"])
        fill = TRAINED if row["policy"].startswith("trained") else OTHER
        out.append(text(BARS[0] - 8, middle + 4, row["policy"], "end"))
        out.append(f'<rect x="{BARS[0]}" y="{middle - 0.32 * height:.1f}" width="{x(measured) - BARS[0]:.1f}" '
                   f'height="{0.64 * height:.1f}" fill="{fill}"/>')
        if row["low"] != row["high"]:
            out.append(f'<line x1="{x(float(row["low"])):.1f}" x2="{x(float(row["high"])):.1f}" y1="{middle:.1f}" '
                       f'y2="{middle:.1f}" stroke="{INK}" stroke-width="2"/>')
        out.append(f'<circle cx="{x(float(row["modelled"])):.1f}" cy="{middle:.1f}" r="3.5" fill="white" stroke="{INK}"/>')
    out.append(text((BARS[0] + BARS[1]) / 2, HEIGHT - 6, "bar: measured, line: 95% interval, ring: modelled", "middle"))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves")
    parser.add_argument("transfer")
    arguments = parser.parse_args()
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
             *draw_curves(read(arguments.curves)), *draw_rewards(read(arguments.transfer)), "</svg>", ""]
    sys.stdout.write("\n".join(lines))


if __name__ == "__main__":
    main()
