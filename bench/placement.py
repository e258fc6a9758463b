#!/usr/bin/env python3
"""How well times repeat that are spent on atomics at few addresses, and whether an honest kernel is accused for them.

  bench/placement.py [--times 20] [--folder DIR] EVALUATOR_GPU [NAME...] > placement.csv

Such a time depends on where the addresses lie in the L2 (docs/evaluator_cuda.md). Writes problems to DIR (or a temporary
folder): histograms of 2 to 4,096 bins and sums at one address, counted in 32 and 64 bits. Each has a reference with one
global atomic an element and a kernel that adds up in shared memory first. EVALUATOR_GPU, the program bench/evaluator_gpu.cc,
judges both, in two processes; of all problems or of those that are named. Prints a line a kernel: evaluations, verdicts other than correct, the median microseconds of
either process, and how far these are apart. Exit code 1 where one was not correct.
"""
import argparse
import collections
import pathlib
import statistics
import subprocess
import sys
import tempfile

TYPES = {"int32": "int", "int64": "long long"}

PROBLEM = """name: {name}
title: Counts
family: histogram
split: train
traits: [histogram]
description: >
  {description}
parameters:
  - {{name: x, role: input, dtype: {input}, shape: [n], {distribution}}}
  - {{name: counts, role: output, dtype: {dtype}, shape: [{bins}]}}
  - {{name: n, role: scalar, dtype: int32, value: n}}
sizes:
  visible: [{{n: 1000}}, {{n: 40000}}]
  hidden: [{{n: 257}}]
  timing: {{n: {n}}}
needs: {{bytes: "4*n", flops: "n"}}
"""

KERNEL = """using Count = {count};
constexpr int kBins = {bins};
__device__ void add(Count* to, Count value) {{ atomicAdd(({word}*)to, ({word})value); }}
__global__ void clear_kernel(Count* counts) {{
  const int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b < kBins) counts[b] = 0;
}}
"""

HISTOGRAM = """__device__ int bin(float v) {{ return min((int)(v * kBins), kBins - 1); }}
__global__ void count_kernel(const float* x, Count* counts, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) add(&counts[bin(x[i])], 1);
}}
extern "C" void launch(const float* x, Count* counts, int n) {{
  clear_kernel<<<(kBins + 255) / 256, 256>>>(counts);
  count_kernel<<<(n + 255) / 256, 256>>>(x, counts, n);
}}
"""

HISTOGRAM_SHARED = """__device__ int bin(float v) {{ return min((int)(v * kBins), kBins - 1); }}
__global__ void count_kernel(const float* x, Count* counts, int n) {{
  __shared__ Count own[kBins];
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) own[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) add(&own[bin(x[i])], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) if (own[b] != 0) add(&counts[b], own[b]);
}}
extern "C" void launch(const float* x, Count* counts, int n) {{
  clear_kernel<<<(kBins + 255) / 256, 256>>>(counts);
  count_kernel<<<min((n + 511) / 512, 528), 512>>>(x, counts, n);
}}
"""

SUM = """__global__ void sum_kernel(const int* x, Count* sum, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) add(sum, x[i]);
}}
extern "C" void launch(const int* x, Count* sum, int n) {{
  clear_kernel<<<1, 256>>>(sum);
  sum_kernel<<<(n + 255) / 256, 256>>>(x, sum, n);
}}
"""

SUM_SHARED = """__global__ void sum_kernel(const int* x, Count* sum, int n) {{
  __shared__ Count own;
  if (threadIdx.x == 0) own = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int warp = __reduce_add_sync(0xffffffffu, i < n ? x[i] : 0);
  if (threadIdx.x % 32 == 0) add(&own, warp);
  __syncthreads();
  if (threadIdx.x == 0) add(sum, own);
}}
extern "C" void launch(const int* x, Count* sum, int n) {{
  clear_kernel<<<1, 256>>>(sum);
  sum_kernel<<<(n + 255) / 256, 256>>>(x, sum, n);
}}
"""


def make_problems(folder):
    made = []
    for dtype, count in TYPES.items():
        for bins in (1, 2, 16, 64, 128, 256, 1024, 2048, 4096):
            one = bins == 1
            name = f"sum_{dtype}" if one else f"histogram_{bins}_{dtype}"
            problem = PROBLEM.format(
                name=name, dtype=dtype, bins=bins, n=2**22 if one else 2**24, input="int32" if one else "float32",
                description="The sum of n small integers." if one else f"How many of n floats lie in each of {bins} bins.",
                distribution="distribution: integers, low: 0, high: 3" if one else
                             "distribution: uniform, low: 0, high: 1")
            place = folder / name
            place.mkdir(parents=True, exist_ok=True)
            (place / "problem.yaml").write_text(problem)
            words = {"count": count, "bins": bins, "word": "int" if dtype == "int32" else "unsigned long long"}
            for file, body in (("reference.cu", SUM if one else HISTOGRAM),
                               ("shared.cu", SUM_SHARED if one else HISTOGRAM_SHARED)):
                (place / file).write_text((KERNEL + body).format(**words))
            made.append(place)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("evaluator_gpu")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    times, verdicts = collections.defaultdict(lambda: ([], [])), collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as scratch:
        folders = make_problems(arguments.folder or pathlib.Path(scratch))
        folders = [folder for folder in folders if not arguments.names or folder.name in arguments.names]
        for process in range(2):
            run = subprocess.run([arguments.evaluator_gpu, "--others", "--key", str(process), str(arguments.times), *map(str, folders)],
                                 stdout=subprocess.PIPE, text=True, check=False)
            for line in run.stdout.splitlines():
                fields = line.split(",")
                if line.startswith("#") or len(fields) < 20 or fields[0] == "problem":
                    if line.startswith("#"):
                        print(line, file=sys.stderr)
                    continue
                verdicts[fields[0]][fields[1]] += 1
                if fields[1] == "correct":
                    times[fields[0]][process].append(float(fields[5]))
    print("kernel,evaluations,not_correct,us_first,us_second,apart_percent")
    accused = 0
    for kernel, counts in verdicts.items():
        wrong = {verdict: count for verdict, count in counts.items() if verdict != "correct"}
        accused += sum(wrong.values())
        medians = [statistics.median(values) if values else float("nan") for values in times[kernel]]
        apart = 100 * abs(medians[0] - medians[1]) / max(medians)
        listed = " ".join(f"{verdict}:{count}" for verdict, count in wrong.items())
        print(f"{kernel},{sum(counts.values())},{listed},{medians[0]:.2f},{medians[1]:.2f},{apart:.2f}")
    return 1 if accused or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
