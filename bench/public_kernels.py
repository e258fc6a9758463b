#!/usr/bin/env python3
"""Public kernels against the time model: fetches those of public_kernels.txt, drafts a problem of each, and judges them.

    bench/public_kernels.py draft OUT [--mirror DIR]        problem folders, from GitHub or from git directories below DIR
    bench/public_kernels.py judge OUT --evaluator evaluator_cuda > measured.csv     on the machine with the GPU
    bench/public_kernels.py judge OUT --evaluator evaluator_sim --set device=h200 > modelled.csv
    bench/public_kernels.py compare measured.csv modelled.csv                       the table of docs/time_model.md

Names after OUT choose kernels. A line a kernel: set, repository, name, group, verdict, microseconds.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))


def read_list():
    """Yields (repository, commit, set, extra files, name, group, path, function, options)."""
    with open(os.path.join(HERE, "public_kernels.txt")) as file:
        for line in file:
            words = shlex.split(line, comments=line.startswith("#"))
            if not words:
                continue
            if words[0] == "@":
                repository, commit, which, *extra = words[1:]
            else:
                yield repository, commit, which, extra, *words[:4], words[4:]


def contents(repository, commit, path, mirror):
    if mirror:
        folder = os.path.join(mirror, repository.replace("/", "+"), "repo")
        return subprocess.run(["git", "-C", folder, "show", f"{commit}:{path}"], check=True, capture_output=True).stdout
    with urllib.request.urlopen(f"https://raw.githubusercontent.com/{repository}/{commit}/{path}") as answer:
        return answer.read()


def draft(arguments, row):
    repository, commit, _, extra, name, _, path, function, options = row
    out = os.path.join(arguments.out, name)
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        for one in [path, *extra]:
            with open(os.path.join(folder, os.path.basename(one)), "wb") as file:
                file.write(contents(repository, commit, one, arguments.mirror))
        source = os.path.join(folder, os.path.basename(path))
        if not source.endswith(".cu"):
            os.rename(source, source + ".cu")
            source += ".cu"
        run = subprocess.run([arguments.host, "problems", "new", source, "--function", function, "--reference-only", "--out", out, *options],
                             capture_output=True, text=True)
    return name, "drafted" if run.returncode == 0 else (run.stderr or run.stdout).strip().replace("\n", " ")[:300]


def judge(arguments, row):
    repository, _, which, _, name, group, *_ = row
    folder = os.path.join(arguments.out, name)
    run = subprocess.run([arguments.host, "eval", "kernel", os.path.join(folder, "reference.cu"), "--problem", folder, "--quick", "--json",
                          "--evaluator", arguments.evaluator, *(word for value in arguments.set for word in ("--set", value))],
                         capture_output=True, text=True)
    try:
        result = json.loads(run.stdout)
        result = result[0] if isinstance(result, list) else result
        metrics = result.get("metrics", {})
        seconds = metrics.get("measured_seconds") or result.get("seconds") or 0
        verdict = result["verdict"]
    except (ValueError, KeyError, IndexError):
        verdict, seconds = "error", 0
        print(f"{name}: {(run.stderr or run.stdout).strip()[:300]}", file=sys.stderr)
    if verdict not in ("correct", "error"):
        print(f"{name}: {verdict}: {result.get('diagnosis', '')[:300]}", file=sys.stderr)
    return which, repository, name, group, verdict, f"{seconds * 1e6:.3f}"


def compare(measured, modelled):
    def read(path):
        with open(path) as file:
            return {row["name"]: row for row in csv.DictReader(file)}
    real, model = read(measured), read(modelled)
    rows = [(row["set"], row["repository"], row["group"], float(row["microseconds"]), float(model[name]["microseconds"]))
            for name, row in real.items() if row["verdict"] == "correct" and model.get(name, {}).get("verdict") == "correct"]

    def line(title, chosen):
        factors = sorted(max(m / r, r / m) for _, _, _, r, m in chosen)
        pairs = [(a, b) for i, a in enumerate(chosen) for b in chosen[:i] if a[2] == b[2] and max(a[3] / b[3], b[3] / a[3]) > 1.1]
        right = sum((a[3] < b[3]) == (a[4] < b[4]) for a, b in pairs)
        print(f"| {title} | {len(chosen)} | {statistics.median(factors):.2f} | {factors[int(0.9 * (len(factors) - 1) + 0.5)]:.2f} | {right} of {len(pairs)} |")
    print("| repository | kernels | median error factor | 90th percentile | pairs > 10% apart in order |\n|---|---|---|---|---|")
    for repository in dict.fromkeys(row[1] for row in rows):
        line(repository, [row for row in rows if row[1] == repository])
    for which in dict.fromkeys(row[0] for row in rows):
        line(f"{which}, together", [row for row in rows if row[0] == which])
    for name, row in real.items():
        if model.get(name, {}).get("verdict") not in (None, "correct"):
            print(f"not compared: {name}: {row['verdict']}, modelled {model[name]['verdict']}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["draft", "judge", "compare"])
    parser.add_argument("out")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mirror")
    parser.add_argument("--evaluator", default="evaluator_sim")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--host", default="build/bin/kgrpo-host")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.task == "compare":
        return compare(arguments.out, arguments.names[0])
    rows = [row for row in read_list() if not arguments.names or row[4] in arguments.names]
    os.makedirs(arguments.out, exist_ok=True)
    writer = csv.writer(sys.stdout)
    if arguments.task == "judge":
        writer.writerow(["set", "repository", "name", "group", "verdict", "microseconds"])
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for result in pool.map(lambda row: (draft if arguments.task == "draft" else judge)(arguments, row), rows):
            writer.writerow(result)
            sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
