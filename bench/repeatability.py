#!/usr/bin/env python3
"""How well a time repeats: reference kernels judged as candidates, many times each, from 5 us to 5 ms a call.

  bench/repeatability.py [--times 20] EVALUATOR_GPU PROBLEMS [NAME...] > repeatability.csv

EVALUATOR_GPU is the program bench/evaluator_gpu.cc, PROBLEMS the folder of problems. Without names: kernels of all lengths, of
which the shortest and the longest are shipped problems with another timing size. Prints evaluator_gpu's lines, and for each
problem and for all the median and the largest |speedup - 1|, which would be 0 for a perfect clock.
"""
import argparse
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

# Shipped problem, name of the variant, timing size.
VARIANTS = [
    ("row_peaks", "row_peaks_short", "{rows: 64, cols: 4096}"),
    ("row_norms", "row_norms_short", "{rows: 64, cols: 4096}"),
    ("swiglu", "swiglu_short", "{n: 131072}"),
    ("bias_gelu_residual", "bias_gelu_residual_short", "{n: 65536}"),
    ("matmul_transposed", "matmul_transposed_long", "{m: 2048, n: 1024, k: 1024}"),
    ("scores_transposed", "scores_transposed_long", "{m: 2048, n: 2048, k: 512}"),
]
SHIPPED = ["row_peaks", "row_norms", "harmonic_sum", "swiglu", "soft_blur", "dot_product", "sum_absolute_difference",
           "transpose", "matmul", "embedding_bag", "measurement_histogram", "matmul_transposed"]


def make_variants(problems, folder):
    made = []
    for shipped, name, size in VARIANTS:
        shutil.copytree(problems / shipped, folder / name)
        path = folder / name / "problem.yaml"
        text = re.sub(r"^name: .*$", "name: " + name, path.read_text(), flags=re.M)
        path.write_text(re.sub(r"^  timing: .*$", "  timing: " + size, text, flags=re.M))
        made.append(folder / name)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("evaluator_gpu")
    parser.add_argument("problems", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = [arguments.problems / name for name in arguments.names]
        if not folders:
            folders = make_variants(arguments.problems, pathlib.Path(scratch))
            folders += [arguments.problems / name for name in SHIPPED]
        run = subprocess.run([arguments.evaluator_gpu, str(arguments.times), *map(str, folders)], stdout=subprocess.PIPE,
                             text=True, check=False)
    sys.stdout.write(run.stdout)
    columns, by_problem, refused = [], {}, 0
    for line in run.stdout.splitlines():
        fields = line.split(",")
        if fields[0] == "problem":
            columns = fields
        elif columns and len(fields) == len(columns):
            row = dict(zip(columns, fields))
            refused += row["verdict"] != "correct"
            by_problem.setdefault(row["problem"], []).append(row)
    everything = []
    print("# problem, evaluations, us a call (least, median, most), |speedup - 1| median and largest, evaluation seconds median")
    for problem, rows in sorted(by_problem.items(), key=lambda item: float(item[1][0]["us"])):
        errors = [abs(float(row["speedup"]) - 1) for row in rows if row["verdict"] == "correct"]
        times = sorted(float(row["us"]) for row in rows)
        everything += errors
        print(f"# {problem}, {len(rows)}, {times[0]:.2f} {statistics.median(times):.2f} {times[-1]:.2f}, "
              f"{statistics.median(errors):.4f} {max(errors):.4f}, "
              f"{statistics.median(float(row['judge_s']) for row in rows):.3f}")
    if everything:
        print(f"# all: {len(everything)} evaluations, {refused} not correct, median {statistics.median(everything):.4f}, "
              f"largest {max(everything):.4f}, above 3%: {sum(error > 0.03 for error in everything)}")
    return run.returncode or (1 if refused or not everything else 0)


if __name__ == "__main__":
    sys.exit(main())
