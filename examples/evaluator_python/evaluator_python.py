#!/usr/bin/env python3
"""An evaluator in Python: judges C functions on the CPU. A problem is a folder with a reference.c. Needs kgrpo_plugin.py
beside it.

    kgrpo-host plugins validate evaluator_program --options options.json
    kgrpo-host eval kernel kernels/faster.c --problem problems/polynomial --evaluator evaluator_program --set 'command=[python3, evaluator_python.py]'

A candidate runs in a process of its own with a limit of time, but not in a sandbox, and its process holds the clock: use it
with coders that you trust.
"""
import array
import os
import subprocess
import tempfile

from kgrpo_plugin import evaluator, run

# Compiled with each kernel: computes once from inputs of a seed, writes the results, and times 21 calls: their median, and
# the 6th and 16th, a 97% interval of it.
MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
void kernel(const float* x, float* y, int n);
static int order(const void* a, const void* b) { return (*(double*)a > *(double*)b) - (*(double*)a < *(double*)b); }
int main(int argc, char** argv) {
  const int n = atoi(argv[1]);
  unsigned long long state = strtoull(argv[2], NULL, 10);
  float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
  for (int i = 0; i < n; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    x[i] = (float)(state >> 40) / (1 << 23) - 1;
    y[i] = 1e30f;
  }
  kernel(x, y, n);
  fwrite(y, sizeof *y, n, stdout);
  double seconds[21];
  for (int i = 0; i < 21; ++i) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    kernel(x, y, n);
    clock_gettime(CLOCK_MONOTONIC, &b);
    seconds[i] = (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec);
  }
  qsort(seconds, 21, sizeof *seconds, order);
  fprintf(stderr, "%.9g %.9g %.9g\n", seconds[10], seconds[5], seconds[15]);
  return argc != 3;
}
"""
SIZES = (1, 1000, 1 << 16)  # the last is timed


def problem(directory):
    """What the host is told of a problem: its name, and the kernel that optimisation starts from."""
    with open(os.path.join(directory, "reference.c"), encoding="utf-8") as file:
        return {"name": os.path.basename(os.path.normpath(directory)), "source": file.read(),
                "signature": "void kernel(const float* x, float* y, int n);",
                "task": "Compute what the reference computes, for x of n numbers in [-1, 1)."}


def build(folder, name, source, compiler):
    """The program's path, or None; and the compiler's words."""
    program = os.path.join(folder, name)
    for file, text in ((program + "_main.c", MAIN), (program + ".c", source)):
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
    command = [compiler, "-O2", "-o", program, program + "_main.c", program + ".c", "-lm"]
    built = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return (program if built.returncode == 0 else None), built.stderr[:2000]


def execute(program, n, seed, seconds):
    done = subprocess.run([program, str(n), str(seed)], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
    done.check_returncode()
    return array.array("f", done.stdout), [float(word) for word in done.stderr.split()]


def difference(got, expected, n):
    """The first one, in words; None where there is none."""
    if len(got) != len(expected):
        return "the kernel must not print"
    for i, (y, reference) in enumerate(zip(got, expected)):
        if not abs(y - reference) <= 1e-5 + 1e-4 * abs(reference):  # not for NaN
            return "n = %d: y[%d] is %g, the reference gives %g" % (n, i, y, reference)
    return None


@evaluator(problem=problem)
def judge(kernel, *, compiler="cc", seconds=10.0):
    """Compiles and compares with the reference for each of SIZES."""
    with tempfile.TemporaryDirectory() as folder:
        program, words = build(folder, "candidate", kernel.source, compiler)
        if program is None:
            return {"compiled": False, "correct": False, "verdict": "not_compiled", "diagnosis": words}
        reference, words = build(folder, "reference", problem(kernel.directory)["source"], compiler)
        if reference is None:
            raise ValueError("reference.c: " + words)
        for n in SIZES:
            expected, _ = execute(reference, n, kernel.seed, seconds)
            try:
                got, times = execute(program, n, kernel.seed, seconds)
                verdict, found = "wrong", difference(got, expected, n)
            except subprocess.TimeoutExpired:
                verdict, found = "timeout", "more than %g s, n = %d" % (seconds, n)
            except (subprocess.CalledProcessError, ValueError) as error:
                verdict, found = "crash", "%s, n = %d" % (error, n)
            if found:
                return {"compiled": True, "correct": False, "verdict": verdict, "diagnosis": found}
        return {"correct": True, "seconds": times[0], "seconds_low": times[1], "seconds_high": times[2],
                "time_source": "this CPU"}


if __name__ == "__main__":
    run()
