#!/usr/bin/env python3
"""Draws how the reward of runs rose, one line a run and their mean, as SVG; with --csv also the figures behind it.

  scripts/learning_curve.py [--metric reward] [--csv FILE.csv] [--title TEXT] RUN_FOLDER... > curve.svg
  scripts/learning_curve.py [--title TEXT] FIGURES.csv > curve.svg

example: scripts/learning_curve.py --csv bench/results/h200_gpu_smollm2_curve.csv runs/smollm2-* > docs/gpu_smollm2.svg

A run's steps are those of its GRPO stage, counted from its first. Needs Python alone.
"""
import argparse
import csv
import pathlib
import sqlite3
import statistics
import sys

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 34, 44
COLOURS = ["#7fb2d9", "#e3a57a", "#9cc48b", "#c9a0d0", "#c7b26b", "#9a9a9a"]
MEAN_COLOUR = "#1a1a1a"


def curve_of(folder, metric):
    """The metric's values by step of the last stage, from 1."""
    with sqlite3.connect(f"file:{folder / 'run.sqlite'}?mode=ro", uri=True) as database:
        stage = database.execute("SELECT MAX(stage) FROM steps").fetchone()[0]
        rows = database.execute("SELECT metrics.step, value FROM metrics JOIN steps ON steps.step = metrics.step "
                                "WHERE name = ? AND stage = ? ORDER BY metrics.step", (metric, stage)).fetchall()
    if not rows:
        sys.exit(f"learning_curve.py: {folder} holds no metric {metric!r} of its last stage")
    first = rows[0][0]
    return {step - first + 1: round(value, 4) for step, value in rows}


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: {int(row["step"]): float(row[name]) for row in rows if row[name]} for name in rows[0] if name != "step"}


def write_csv(path, curves):
    steps = sorted(set().union(*curves.values()))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["step", *curves])
        for step in steps:
            writer.writerow([step, *(f"{curve[step]:.4f}" if step in curve else "" for curve in curves.values())])


def svg(curves, title, metric):
    last = max(max(curve) for curve in curves.values())
    values = [value for curve in curves.values() for value in curve.values()]
    low, high = min(0.0, min(values)), max(values) * 1.05

    def x(step):
        return LEFT + (step - 1) / max(1, last - 1) * (WIDTH - LEFT - RIGHT)

    def y(value):
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def line(points, colour, width):
        path = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in sorted(points.items()))
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'

    tick = next(size for size in (0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 50, 1e9) if (high - low) / size <= 8)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', f'<text x="{LEFT}" y="20" font-size="14">{title}</text>']
    for i in range(int(low // tick), int(high / tick) + 1):
        if i * tick < low:
            continue
        at = y(i * tick)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{i * tick:g}</text>')
    for step in range(0, last + 1, max(1, round(last / 50) * 5)):
        out.append(f'<text x="{x(max(1, step)):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{max(1, step)}</text>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle">GRPO step</text>')
    out.append(f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 {HEIGHT / 2})">{metric}</text>')
    for i, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        out.append(line(curve, colour, 1.5))
        out.append(f'<text x="{WIDTH - RIGHT - 6}" y="{HEIGHT - BOTTOM - 10 - 16 * i}" text-anchor="end" fill="{colour}">{name}</text>')
    if len(curves) > 1:
        everywhere = set.intersection(*(set(curve) for curve in curves.values()))
        out.append(line({step: statistics.mean(curve[step] for curve in curves.values()) for step in everywhere}, MEAN_COLOUR, 2.5))
        out.append(f'<text x="{WIDTH - RIGHT - 6}" y="{HEIGHT - BOTTOM - 10 - 16 * len(curves)}" text-anchor="end">mean</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metric", default="reward")
    parser.add_argument("--csv", type=pathlib.Path, help="write the figures here")
    parser.add_argument("--title", default="Mean reward of a step's samples")
    parser.add_argument("runs", nargs="+", type=pathlib.Path, help="run folders, or one CSV that --csv wrote")
    arguments = parser.parse_args()
    if len(arguments.runs) == 1 and arguments.runs[0].suffix == ".csv":
        curves = read_csv(arguments.runs[0])
    else:
        curves = {folder.name: curve_of(folder, arguments.metric) for folder in arguments.runs}
    if arguments.csv:
        write_csv(arguments.csv, curves)
    sys.stdout.write(svg(curves, arguments.title, arguments.metric))


if __name__ == "__main__":
    main()
