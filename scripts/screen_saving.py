#!/usr/bin/env python3
"""How many evaluations a screen saves, and how exact the advantages stay, from a run with `screen.audit: 1`.

usage: screen_saving.py RUN [--audit SHARE] [--gamma GAMMA] [--from-step N]

In such a run the evaluator gets every kernel, and the records tell which ones the screen would have decided, with the reward that its
estimate would have earned. --audit: the share of decided kernels that a real run would evaluate. An advantage is the return (rewards
discounted by --gamma) less the mean over the step's samples of the same problem and round. A kernel counts once per problem, since
evaluators keep evaluations.

example: scripts/screen_saving.py runs/screened --gamma 0.4
"""
import argparse
import collections
import json
import math
import os
import sqlite3
import sys


def correlation(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    product = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    squares = sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)
    return product / math.sqrt(squares) if squares > 0 else math.nan


def read_rounds(run, first):
    """Yields (step, trajectory, problem, round, kernel or None, reward, the screen's reward or None)."""
    database = sqlite3.connect(f"file:{os.path.join(run, 'run.sqlite')}?mode=ro", uri=True)
    for row in database.execute("SELECT step, trajectory, problem_name, round, code_c, verdict, unchanged, reward, metrics FROM rounds JOIN "
                                "trajectories USING (purpose, step, trajectory) WHERE purpose = 'train' AND step >= ? ORDER BY 1, 2, 4",
                                (first,)):
        step, trajectory, problem, number, kernel, verdict, unchanged, reward, metrics = row
        judged = verdict is not None and not unchanged
        names = json.loads(metrics) if judged else {}
        yield step, trajectory, problem, number, kernel if judged else None, reward, names.get("screen/reward")


def advantages(rows, column, gamma):
    returns, groups = {}, collections.defaultdict(list)
    for row in reversed(rows):  # later rounds first
        later = returns.get((row[0], row[1], row[3] + 1), 0)
        returns[row[0], row[1], row[3]] = row[column] + gamma * later
        groups[row[0], row[2], row[3]].append((row[0], row[1], row[3]))
    result = {}
    for keys in groups.values():
        mean = sum(returns[key] for key in keys) / len(keys)
        for key in keys:
            result[key] = returns[key] - mean
    return [result[row[0], row[1], row[3]] for row in rows]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0], description=__doc__.split("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--audit", type=float, default=0.05)
    parser.add_argument("--gamma", type=float, default=0.4)
    parser.add_argument("--from-step", type=int, default=1)
    given = parser.parse_args()
    rows = [row[:6] + (row[5] if row[6] is None else row[6], row[6] is not None) for row in read_rounds(given.run, given.from_step)]
    if not any(row[7] for row in rows):
        sys.exit(f"{given.run} has no audited kernel: run it with screen.audit: 1")
    judged = [row for row in rows if row[4] is not None]
    first = {}  # a kernel that the evaluator got once costs nothing later
    for row in judged:
        first[row[2], row[4]] = first.get((row[2], row[4]), True) and row[7]
    needed = sum(given.audit if decided else 1 for decided in first.values())
    decided = [row for row in judged if row[7]]
    print(f"kernels             {len(judged)}, of them {len(first)} distinct")
    print(f"decided             {len(decided)} ({100 * len(decided) / len(judged):.0f}%)")
    print(f"evaluations         {needed:.0f} of {len(first)}: {len(first) / needed:.2f} times fewer")
    print(f"error of rewards    {math.sqrt(sum((row[6] - row[5]) ** 2 for row in decided) / len(decided)):.3f} rms, "
          f"{sum(row[6] - row[5] for row in decided) / len(decided):+.3f} on average, where decided")
    for gamma in dict.fromkeys([0.0, given.gamma]):
        print(f"correlation         {correlation(advantages(rows, 5, gamma), advantages(rows, 6, gamma)):.4f} of advantages, gamma {gamma}")


if __name__ == "__main__":
    main()
