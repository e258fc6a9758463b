#!/usr/bin/env python3
"""What it costs to evaluate one kernel the usual way, beside our evaluator: seconds from source to verdict.

    bench/kernelbench_style.py [--repetitions 3] [--evaluator build/bin/evaluator_gpu] [--threshold 0.01] PROBLEM_DIRECTORY...

The usual way (KernelBench and its like, on a machine with PyTorch): torch.utils.cpp_extension.load_inline of the source with a
wrapping function, in an empty build directory; 5 trials with random inputs against the reference; 3 calls to warm up and 100 timed
ones with CUDA events and a synchronisation each. In this process, without a sandbox. Importing torch and making the CUDA context
are not counted, nor is compiling the reference that it compares with. The kernel is the problem's reference.cu on both sides.

Ours: evaluator_gpu, a process a repetition, by nvcc and by the fast route; the clock runs from source to verdict, not over the start of
its compilers and workers, which happens once a run. It checks more (all sizes, secret seeds, guards) and times both kernels.

The order changes with each repetition. Prints a CSV line a repetition, and a line a problem with the median of each ratio and its
spread (least and greatest). Needs torch with ninja, nvcc, PyYAML and a GPU.
"""

import argparse
import csv
import ctypes
import io
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import yaml

C_TYPES = {
    "float32": "float", "float64": "double", "float16": "__half", "bfloat16": "__nv_bfloat16",
    "int32": "int", "int64": "long long", "uint8": "unsigned char", "uint32": "unsigned int",
}
TORCH_TYPES = {
    "float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16,
    "int32": torch.int32, "int64": torch.int64, "uint8": torch.uint8, "uint32": torch.uint32,
}
CTYPES = {"float32": ctypes.c_float, "float64": ctypes.c_double, "int32": ctypes.c_int, "int64": ctypes.c_longlong,
          "uint8": ctypes.c_ubyte, "uint32": ctypes.c_uint}
TRIALS, WARM_UP, TIMED = 5, 3, 100


def evaluate(expression, size):
    """An expression of problem.yaml at a size; whole numbers divide downwards, as there."""
    text = str(expression).replace("/", "//") if "sqrt" not in str(expression) and "." not in str(expression) else str(expression)
    names = {"min": min, "max": max, "sqrt": math.sqrt, "ceil_div": lambda a, b: -(-a // b)}
    return eval(text, {"__builtins__": {}}, {**names, **size})  # the author of a problem is trusted


class Problem:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.content = yaml.safe_load((self.folder / "problem.yaml").read_text(encoding="utf-8"))
        self.name = self.content["name"]
        self.source = (self.folder / "reference.cu").read_text(encoding="utf-8")
        self.parameters = self.content["parameters"]
        self.size = self.content["sizes"]["timing"]
        self.entry = self.content.get("entry", "launch")

    def tensors(self):
        return [p for p in self.parameters if p["role"] != "scalar"]

    def shape(self, parameter):
        return [int(evaluate(extent, self.size)) for extent in parameter["shape"]]

    def scalar(self, parameter):
        return evaluate(parameter["value"], self.size)

    def draw(self, parameter):
        """An input on the GPU, of about the distribution that the problem asks for."""
        shape, dtype = self.shape(parameter), TORCH_TYPES[parameter["dtype"]]
        kind = parameter.get("distribution", "normal")
        bound = lambda key, other: evaluate(parameter.get(key, other), self.size)  # noqa: E731
        if kind == "uniform":
            low, high = bound("low", 0), bound("high", 1)
            return (torch.rand(shape, device="cuda") * (high - low) + low).to(dtype)
        if kind == "integers":
            return torch.randint(int(bound("low", 0)), int(bound("high", 100)) + 1, shape, device="cuda").to(dtype)
        if kind == "large_offset":
            return (torch.randn(shape, device="cuda") * parameter.get("deviation", 1) + parameter.get("offset", 1000)).to(dtype)
        if kind == "sparse":
            keep = torch.rand(shape, device="cuda") < parameter.get("density", 0.1)
            return (torch.randn(shape, device="cuda") * keep).to(dtype)
        if kind == "permutation":
            return torch.randperm(math.prod(shape), device="cuda").reshape(shape).to(dtype)
        if kind == "offsets":
            return torch.sort(torch.randint(0, int(bound("high", 100)) + 1, shape, device="cuda").flatten())[0].reshape(shape).to(dtype)
        if kind == "constant":
            return torch.full(shape, parameter.get("value", 0), device="cuda").to(dtype)
        return (torch.randn(shape, device="cuda") * parameter.get("deviation", 1) + parameter.get("mean", 0)).to(dtype)

    def inputs(self, seed):
        torch.manual_seed(seed)
        return {p["name"]: torch.empty(self.shape(p), device="cuda", dtype=TORCH_TYPES[p["dtype"]])
                if p["role"] == "output" else self.draw(p) for p in self.tensors()}

    def written(self):
        return [p["name"] for p in self.parameters if p["role"] in ("output", "inout")]


def wrapper(problem):
    """The C++ function that load_inline binds: tensors in, the launch function called with their pointers."""
    arguments, passed = [], []
    for p in problem.parameters:
        c_type = C_TYPES[p["dtype"]]
        if p["role"] == "scalar":
            whole = p["dtype"].startswith(("int", "uint"))
            arguments.append(f"{'int64_t' if whole else 'double'} {p['name']}")
            passed.append(f"static_cast<{c_type}>({p['name']})")
        else:
            constant = "const " if p["role"] == "input" else ""
            arguments.append(f"torch::Tensor {p['name']}")
            passed.append(f"reinterpret_cast<{constant}{c_type}*>({p['name']}.data_ptr())")
    return f"void run({', '.join(arguments)})", f"{{ {problem.entry}({', '.join(passed)}); }}"


class Reference:
    """The problem's reference kernel, compiled without torch's headers: what the usual way's results are compared with."""

    def __init__(self, problem, folder):
        library = pathlib.Path(folder) / f"{problem.name}.so"
        source = pathlib.Path(folder) / f"{problem.name}.cu"
        source.write_text(problem.source, encoding="utf-8")
        major, minor = torch.cuda.get_device_capability()
        nvcc = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "nvcc")
        subprocess.run([nvcc if os.path.exists(nvcc) else "nvcc", "-shared", "-std=c++17", "-O3", "-Xcompiler", "-fPIC",
                        f"-arch=sm_{major}{minor}", "-o", library, source], check=True)
        self.function = getattr(ctypes.CDLL(str(library)), problem.entry)
        self.function.restype = None

    def run(self, problem, tensors):
        self.function(*[CTYPES[p["dtype"]](problem.scalar(p)) if p["role"] == "scalar"
                        else ctypes.c_void_p(tensors[p["name"]].data_ptr()) for p in problem.parameters])


def the_usual_way(problem, reference, name, tolerance):
    """Seconds of (compiling, checking, timing), the verdict, and the mean time of a call."""
    from torch.utils.cpp_extension import load_inline

    major, minor = torch.cuda.get_device_capability()
    os.environ["TORCH_CUDA_ARCH_LIST"] = f"{major}.{minor}"
    build = tempfile.mkdtemp(prefix="kernelbench-style-")
    try:
        torch.cuda.synchronize()
        start = time.perf_counter()
        declaration, body = wrapper(problem)
        module = load_inline(name=name, cpp_sources=declaration + ";", cuda_sources=f"{problem.source}\n{declaration} {body}\n",
                             functions=["run"], build_directory=build, verbose=False)
        compiled = time.perf_counter()

        def call(tensors):
            module.run(*[problem.scalar(p) if p["role"] == "scalar" else tensors[p["name"]] for p in problem.parameters])

        correct = True
        for trial in range(TRIALS):
            tensors = problem.inputs(trial)
            expected = {key: value.clone() for key, value in tensors.items()}
            reference.run(problem, expected)
            call(tensors)
            torch.cuda.synchronize()
            for key in problem.written():
                correct = correct and torch.allclose(tensors[key].double(), expected[key].double(), rtol=tolerance, atol=tolerance)
        checked = time.perf_counter()

        tensors = problem.inputs(0)
        for _ in range(WARM_UP):
            call(tensors)
        torch.cuda.synchronize()
        milliseconds = []
        for _ in range(TIMED):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call(tensors)
            end.record()
            torch.cuda.synchronize()
            milliseconds.append(begin.elapsed_time(end))
        timed = time.perf_counter()
    finally:
        shutil.rmtree(build, ignore_errors=True)
    return compiled - start, checked - compiled, timed - checked, correct, statistics.mean(milliseconds) * 1e3


def ours(evaluator, route, problem):
    """Seconds from source to verdict, and microseconds a call, of an evaluator that has seen nothing yet."""
    output = subprocess.run([evaluator, "--route", route, "1", str(problem.folder)], check=True, capture_output=True, text=True).stdout
    lines = [line for line in output.splitlines() if line and not line.startswith("#")]
    # What the evaluator says of itself has lines of its own: the table begins with its head.
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("problem,")):]
    [row] = csv.DictReader(io.StringIO("\n".join(lines)))
    if row["verdict"] != "correct":
        raise SystemExit(f"{problem.name}: our evaluator says {row['verdict']} of the reference:\n{output}")
    return float(row["judge_s"]), float(row["us"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--evaluator", "--judge", default="build/bin/evaluator_gpu")
    parser.add_argument("--threshold", type=float, default=1e-2, help="rtol and atol of the usual way's torch.allclose")
    parser.add_argument("problems", nargs="+")
    arguments = parser.parse_args()
    torch.zeros(1, device="cuda")
    writer = csv.writer(sys.stdout)
    writer.writerow(["problem", "repetition", "usual_s", "usual_compile_s", "usual_check_s", "usual_time_s", "usual_us", "nvcc_s",
                     "fast_s", "our_us", "ratio_nvcc", "ratio_fast"])
    summary = []
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.problems:
            problem = Problem(path)
            reference = Reference(problem, folder)
            ratios = {"nvcc": [], "fast": []}
            for repetition in range(arguments.repetitions):
                result = {}
                steps = ["usual", "nvcc", "fast"]
                for step in steps[repetition % 3:] + steps[:repetition % 3]:
                    if step == "usual":
                        name = f"kernel_{problem.name}_{os.getpid()}_{repetition}"
                        result[step] = the_usual_way(problem, reference, name, arguments.threshold)
                    else:
                        torch.cuda.synchronize()
                        result[step] = ours(arguments.evaluator, step, problem)
                compile_s, check_s, time_s, correct, usual_us = result["usual"]
                if not correct:
                    raise SystemExit(f"{problem.name}: the usual way finds the reference unequal to itself: raise --threshold")
                usual = compile_s + check_s + time_s
                for route in ratios:
                    ratios[route].append(usual / result[route][0])
                writer.writerow([problem.name, repetition] + [f"{value:.3f}" for value in (
                    usual, compile_s, check_s, time_s, usual_us, result["nvcc"][0], result["fast"][0], result["fast"][1],
                    ratios["nvcc"][-1], ratios["fast"][-1])])
                sys.stdout.flush()
            summary.append((problem.name, ratios))
    for name, ratios in summary:
        spread = "; ".join(f"{route}: {statistics.median(values):.1f} times as quick [{min(values):.1f}, {max(values):.1f}]"
                           for route, values in ratios.items())
        print(f"# {name}: {spread}")


if __name__ == "__main__":
    main()
