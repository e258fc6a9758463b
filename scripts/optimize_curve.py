#!/usr/bin/env python3
"""Best speedup against evaluations: `kgrpo-host optimize` for several policies on several problems.

    scripts/optimize_curve.py configs/quickstart.yaml --out build/curve --evaluations 32 \
        --problems softmax_temperature swiglu row_peaks --policy "trained, seed 1=runs/quickstart" --policy uniform=uniform

--jobs N searches run at once. Searches that are in --out already are not repeated. Writes curve.svg there and prints a Markdown table: the geometric mean
over problems of the best speedup over the reference that a search had found after so many evaluations, and its 95%
interval (bootstrap over problems). docs/optimize.md ("Policy or uniform?") has what it found.
"""
import argparse
import concurrent.futures
import contextlib
import json
import math
import pathlib
import random
import sqlite3
import subprocess
import sys

COLOURS = ["#0969da", "#8250df", "#1a7f37", "#cf222e", "#9a6700", "#57606a"]


def search(host, pipeline, policy, problem, evaluations, folder):
    if not (folder / "evidence.json").exists():
        command = [host, "optimize", problem, "--policy", policy, "--pipeline", pipeline,
                   "--evaluations", str(evaluations), "--out", str(folder), "--quiet", "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    best = [1.0] * (evaluations + 1)  # by the number of evaluations; the reference has speedup 1
    seen = set()
    with contextlib.closing(sqlite3.connect(folder / "run.sqlite")) as record:
        rows = record.execute("SELECT code_b, code_c, speedup FROM all_rounds WHERE verdict IS NOT NULL "
                              "ORDER BY step, trajectory").fetchall()
    start = rows[0][0] if rows else ""
    for _, kernel, speedup in rows:
        if kernel != start:
            seen.add(kernel)
        for i in range(len(seen), evaluations + 1):
            best[i] = max(best[i], speedup)
    return best


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def interval(values):
    draw = random.Random(1)
    means = sorted(geometric(draw.choices(values, k=len(values))) for _ in range(2000))
    return means[50], means[1949]


def svg(curves, evaluations):
    width, height, left, top = 640, 360, 56, 24
    high = max(max(curve) for curve in curves.values()) * 1.05
    x = lambda n: left + (width - left - 16) * n / evaluations
    y = lambda s: height - 48 - (height - 48 - top) * (s - 1) / (high - 1)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             f'font-size="12"><rect width="100%" height="100%" fill="white"/>']
    step = 0.5 if high < 5 else 1
    for k in range(int((high - 1) / step) + 1):
        s = 1 + k * step
        parts.append(f'<path d="M{left} {y(s):.1f}H{width - 16}" stroke="#d0d7de"/>'
                     f'<text x="{left - 6}" y="{y(s) + 4:.1f}" text-anchor="end">{s:g}x</text>')
    for n in range(0, evaluations + 1, max(1, evaluations // 8)):
        parts.append(f'<text x="{x(n):.1f}" y="{height - 30}" text-anchor="middle">{n}</text>')
    parts.append(f'<text x="{(left + width) / 2}" y="{height - 10}" text-anchor="middle">evaluations</text>')
    for i, (label, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(f"{x(n):.1f},{y(s):.1f}" for n, s in enumerate(curve))
        row = height - 64 - 16 * (len(curves) - 1 - i)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
                     f'<text x="{width - 24}" y="{row}" text-anchor="end" fill="{colour}">{label}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline")
    parser.add_argument("--problems", nargs="+", required=True, metavar="PROBLEM")
    parser.add_argument("--policy", action="append", required=True, metavar="LABEL=POLICY")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--evaluations", type=int, default=32)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--host", default="build/bin/kgrpo-host")
    arguments = parser.parse_args()
    policies = dict(given.split("=", 1) for given in arguments.policy)
    if len(policies) < len(arguments.policy):
        parser.error("--policy: two have the same label")
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        searches = {
            label: [pool.submit(search, arguments.host, arguments.pipeline, policy, problem, arguments.evaluations,
                                arguments.out / str(number) / pathlib.Path(problem).name)
                    for problem in arguments.problems] for number, (label, policy) in enumerate(policies.items(), 1)
        }
        try:
            found = {label: [future.result() for future in futures] for label, futures in searches.items()}
        except RuntimeError as error:
            pool.shutdown(cancel_futures=True)
            sys.exit(str(error))
    curves, rows = {}, []
    marks = [n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n <= arguments.evaluations]
    for label, bests in found.items():
        curves[label] = [geometric([best[n] for best in bests]) for n in range(arguments.evaluations + 1)]
        low, high = interval([best[-1] for best in bests])
        rows.append(f"| {label} | " + " | ".join(f"{curves[label][n]:.2f}" for n in marks) +
                    f" | [{low:.2f}, {high:.2f}] |")
    print("| suggestions | " + " | ".join(map(str, marks)) + " | 95% interval of the last |")
    print("|---|" + "---|" * (len(marks) + 1))
    print("\n".join(rows))
    (arguments.out / "curve.svg").write_text(svg(curves, arguments.evaluations))


if __name__ == "__main__":
    main()
