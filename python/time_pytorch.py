#!/usr/bin/env python3
"""Times PyTorch on KernelBench's problems, as a file that `kgrpo-host eval suite --pytorch-times` reads.

    python time_pytorch.py KernelBench/ --mode compile --out compile.json
    kgrpo-host eval suite kernelbench/ --kernels mine/ --evaluator evaluator_cuda --pytorch-times compile.json

Needs PyTorch, and a GPU unless --device cpu. Each problem is built and compiled in a process of its own, so that nothing
compiled for other shapes is used. A stopped run continues where it was. docs/kernelbench.md describes it.
"""
import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import time
import types

WARM_UP = 3  # calls before timing; one more is timed but discarded, as KernelBench does
FLUSH_BYTES = 256 << 20
SEED = 42
DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
MODES = {"eager": None, "compile": "default", "reduce-overhead": "reduce-overhead", "max-autotune": "max-autotune"}


def parse_arguments():
    parser = argparse.ArgumentParser(description="Time PyTorch, eager or compiled, on KernelBench's problems.",
                                     epilog="example: time_pytorch.py KernelBench/ --mode compile --level 1 --out compile.json")
    parser.add_argument("path", metavar="PATH", help="a clone of KernelBench")
    parser.add_argument("--out", required=True, metavar="FILE.json", help="the times; problems that it has are left out")
    parser.add_argument("--mode", choices=sorted(MODES), default="compile", help="of torch.compile, or eager (default: compile)")
    parser.add_argument("--level", default="1,2,3", help="which levels (default: 1,2,3)")
    parser.add_argument("--only", default="", metavar="N,N...", help="only problems of these numbers")
    parser.add_argument("--precision", choices=sorted(DTYPES), default="fp32")
    parser.add_argument("--device", default="cuda", help="cuda (default) or cpu")
    parser.add_argument("--trials", type=int, default=100, help="timed calls (default: 100)")
    parser.add_argument("--seconds", type=float, default=600, help="of one problem, with compiling (default: 600)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # PATH is the file of one problem
    return parser.parse_args()


def fail(message, code=3):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)


def find_problems(path, levels, numbers):
    """(level, file) of each problem, in order."""
    found = []
    for root in (path, os.path.join(path, "KernelBench")):
        for level in levels:
            folder = os.path.join(root, f"level{level}")
            for name in os.listdir(folder) if os.path.isdir(folder) else []:
                match = re.match(r"(\d+)_.*\.py$", name)
                if match and (not numbers or int(match[1]) in numbers):
                    found.append((level, int(match[1]), os.path.join(folder, name)))
    return [(level, file) for level, _, file in sorted(found)]


def seconds_of_call(torch, call, device, flush):
    """One call with a cold cache, on the device's clock or the host's."""
    if device == "cpu":
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flush.fill_(SEED)
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e-3


def time_one(arguments):
    """The row of the problem in the file arguments.path, in milliseconds."""
    try:
        import torch
    except ImportError as error:
        fail(f"{sys.executable} cannot load PyTorch: {error}", 4)
    dtype, device = getattr(torch, DTYPES[arguments.precision]), arguments.device

    def moved(value):
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(device=device, dtype=dtype if value.is_floating_point() else value.dtype)

    module = types.ModuleType("problem")
    with open(arguments.path, encoding="utf-8") as file:
        exec(compile(file.read(), arguments.path, "exec"), module.__dict__)
    with torch.no_grad():
        torch.manual_seed(SEED)
        inputs = [moved(value) for value in module.get_inputs()]
        torch.manual_seed(SEED)
        model = module.Model(*(moved(value) for value in module.get_init_inputs())).to(device=device, dtype=dtype)
        if MODES[arguments.mode] is not None:
            model = torch.compile(model, mode=MODES[arguments.mode])
        flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=device) if device != "cpu" else None
        for _ in range(WARM_UP):
            model(*inputs)
        times = [1e3 * seconds_of_call(torch, lambda: model(*inputs), device, flush) for _ in range(arguments.trials + 1)][1:]
    hardware = torch.cuda.get_device_name() if device != "cpu" else "CPU"
    return {"mean": statistics.fmean(times), "median": statistics.median(times), "std": statistics.pstdev(times),
            "min": min(times), "max": max(times), "num_trials": len(times), "hardware": hardware, "device": device,
            "mode": arguments.mode, "torch": torch.__version__}


def run_one(file, arguments):
    """The row of a problem, timed by a process of its own; or why there is none."""
    command = [sys.executable, os.path.abspath(__file__), file, "--one", "--out", "-", "--mode", arguments.mode,
               "--precision", arguments.precision, "--device", arguments.device, "--trials", str(arguments.trials)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.seconds)
    except subprocess.TimeoutExpired:
        return None, f"it took longer than {arguments.seconds:.0f} s"
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1]), ""
    if done.returncode == 4:
        sys.stderr.write(done.stderr)
        sys.exit(4)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return None, lines[-1][:200] if lines else f"its process ended with {done.returncode}"


def main():
    arguments = parse_arguments()
    if importlib.util.find_spec("torch") is None:  # only the processes that time load it
        fail(f"PyTorch is needed, and {sys.executable} has none: {sys.executable} -m pip install torch", 4)
    if arguments.one:
        print(json.dumps(time_one(arguments)))
        return
    if not re.fullmatch(r"[1-3](,[1-3])*", arguments.level):
        fail(f"--level {arguments.level}: expected numbers such as 1,2,3", 2)
    if not re.fullmatch(r"(\d+(,\d+)*)?", arguments.only):
        fail(f"--only {arguments.only}: expected numbers such as 1,7", 2)
    numbers = {int(number) for number in arguments.only.split(",") if number}
    problems = find_problems(arguments.path, sorted({int(level) for level in arguments.level.split(",")}), numbers)
    if not problems:
        fail(f"{arguments.path}: holds no level*/N_*.py of these levels and numbers")
    times = {}
    if os.path.exists(arguments.out):
        with open(arguments.out, encoding="utf-8") as file:
            times = json.load(file)
    refused = 0
    for i, (level, file) in enumerate(problems):
        rows, name = times.setdefault(f"level{level}", {}), os.path.basename(file)
        if name in rows:
            continue
        row, why = run_one(file, arguments)
        print(f"{i + 1}/{len(problems)} level{level}/{name}: " + (f"{row['mean']:.4g} ms" if row else why), flush=True)
        if row is None:
            refused += 1
            continue
        rows[name] = row
        with open(arguments.out + ".new", "w", encoding="utf-8") as file:
            json.dump(times, file, indent=1)
        os.replace(arguments.out + ".new", arguments.out)
    print(f"{sum(map(len, times.values()))} times in {arguments.out}" + (f"; {refused} problems without one" if refused else ""))


if __name__ == "__main__":
    main()
