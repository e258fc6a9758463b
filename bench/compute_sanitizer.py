#!/usr/bin/env python3
"""Who finds what: NVIDIA's compute-sanitizer beside the checked interpreter, on the kernels of tests/judging.

    bench/compute_sanitizer.py generate DIR    # here: each kernel with a main() that gives it inputs; wants PyYAML
    bench/compute_sanitizer.py run DIR         # where the GPU is: compiles, runs the four tools, prints the table
    bench/compute_sanitizer.py table DIR       # the table of what has been run

`generate` takes tests/judging/bugs and tests/judging/honest (--folders) and writes DIR/NAME.cu and DIR/manifest.csv;
what the interpreter finds is what the first lines of the files say, to which judging_sim_test holds it. `run` needs
nothing but Python, nvcc and compute-sanitizer. It adds a line to DIR/results.csv for each kernel and tool, and goes on
behind what is there when it is run again. Printed is a CSV line a kernel: what the interpreter says, then by tool
`N errors`, with `@line` where the tool names a line that holds the bug, `-` where it found nothing, or why it has none.
"""
import argparse
import contextlib
import csv
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
MANIFEST = ("name", "folder", "interpreter", "lines")
RESULTS = ("name", "tool", "outcome", "errors", "line_named", "seconds", "first")

HARNESS = r"""
// ---- what follows is not the kernel's: inputs, the calls, and whether they end well ----
#include <cuda_fp16.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace kgrpo_harness {
void MustSucceed(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("HARNESS %s: %s\n", what, cudaGetErrorString(error));
  std::fflush(stdout);
  std::_Exit(3);
}
unsigned long long state = 88172645463325252ull;
double Uniform() {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<double>(state >> 11) / 9007199254740992.0;
}
template <typename T>
T* Reserve(size_t count) {
  T* device = nullptr;
  MustSucceed(cudaMalloc(&device, count * sizeof(T)), "cudaMalloc");
  return device;
}
// Normal: about, from twelve uniform numbers.
template <typename T>
T* Fill(size_t count, bool normal, double low, double high) {
  std::vector<T> values(count);
  for (T& value : values) {
    double v = 0;
    if (normal) {
      for (int i = 0; i < 12; ++i) v += Uniform();
      v = v - 6 + low;
    } else {
      v = low + (high - low) * Uniform();
    }
    value = static_cast<T>(static_cast<float>(v));
  }
  T* device = Reserve<T>(count);
  MustSucceed(cudaMemcpy(device, values.data(), count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return device;
}
template <typename T>
T* Integers(size_t count, long long low, long long high) {
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(low + static_cast<long long>(Uniform() * (high - low + 1)));
  T* device = Reserve<T>(count);
  MustSucceed(cudaMemcpy(device, values.data(), count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return device;
}
}  // namespace kgrpo_harness

int main() {
"""
TYPES = {"float32": "float", "float16": "__half", "float64": "double", "int32": "int", "int64": "long long"}


def evaluate(expression, size):
    """The value of an expression of a problem.yaml, such as `rows*cols - 1`, at a size."""
    text = str(expression)
    if not re.fullmatch(r"[\w\s+*/()\-.]+", text):
        raise ValueError(f"cannot evaluate {text!r}")
    return eval(text.replace("/", "//") if "." not in text else text, {"__builtins__": {}}, dict(size))


def call_at(problem, size):
    """C++ that calls launch() once at `size` with fresh tensors."""
    body, names, tensors = [], [], []
    for parameter in problem["parameters"]:
        kind, role = TYPES[parameter["dtype"]], parameter["role"]
        name = "p" + str(len(names))
        if role == "scalar":
            body.append(f"const {kind} {name} = static_cast<{kind}>({evaluate(parameter['value'], size)});")
        else:
            shape = [evaluate(extent, size) for extent in parameter["shape"]]
            if "pitch" in parameter:
                shape[-1] = evaluate(parameter["pitch"], size)
            count = 1
            for extent in shape:
                count *= extent
            if role == "output":
                make = f"kgrpo_harness::Reserve<{kind}>({count})"
            elif parameter.get("distribution") == "integers":
                low, high = (evaluate(parameter[key], size) for key in ("low", "high"))
                make = f"kgrpo_harness::Integers<{kind}>({count}, {low}, {high})"
            else:
                normal = parameter.get("distribution", "normal") != "uniform"
                low = parameter.get("offset", 0) if normal else parameter["low"]
                high = low if normal else parameter["high"]
                make = f"kgrpo_harness::Fill<{kind}>({count}, {'true' if normal else 'false'}, {low}, {high})"
            body.append(f"{kind}* {name} = {make};")
            tensors.append(name)
        names.append(name)
    body.append(f"{problem.get('entry', 'launch')}({', '.join(names)});")
    body.append('kgrpo_harness::MustSucceed(cudaGetLastError(), "launch");')
    body.append('kgrpo_harness::MustSucceed(cudaDeviceSynchronize(), "cudaDeviceSynchronize");')
    body += [f'kgrpo_harness::MustSucceed(cudaFree({name}), "cudaFree");' for name in tensors]
    return "  {\n" + "".join(f"    {line}\n" for line in body) + "  }\n"


def edited(diff):
    """The kernel that a .diff describes (tests/judging/catalogue.h)."""
    header = re.match(r"(// .*\n)*", diff)[0]
    names = dict(re.findall(r"^// (\w+): (.*)$", header, re.MULTILINE))
    base = ROOT / (f"tests/judging/{names['twin']}.cu" if "twin" in names else f"{names['problem']}/reference.cu")
    old, made = re.sub(r"^(// \w+: .*\n)*", "", base.read_text()).splitlines(), []
    for line in diff[len(header):].splitlines():
        if line[0] != "+":
            at = old.index(line[1:].removesuffix("  // found"))
            made, old = made + old[:at], old[at + 1:]
        if line[0] != "-":
            made.append(line[1:])
    return header + "\n".join(made + old) + "\n"


def generate(directory, folders):
    import yaml  # only here: the machine with the GPU need not have it

    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "manifest.csv", "w", newline="") as file:
        manifest = csv.writer(file)
        manifest.writerow(MANIFEST)
        for folder in folders:
            # Most honest kernels are packed; a build of the tests unpacks them.
            places = [ROOT / "tests/judging" / folder, ROOT / "build/test_data/judging" / folder]
            paths = [path for place in places for path in (*place.glob("*.cu"), *place.glob("*.diff"))]
            for path in sorted(paths, key=lambda path: path.name):
                source = edited(path.read_text()) if path.suffix == ".diff" else path.read_text()
                header = dict(re.findall(r"^// (\w+): (.*)$", source, re.MULTILINE))
                interpreter = (header.get("finding") or header["sim"]).split()[0]
                lines = [str(i) for i, line in enumerate(source.splitlines(), 1) if line.endswith("// found")]
                problem = yaml.safe_load((ROOT / header["problem"] / "problem.yaml").read_text())
                sizes = problem["sizes"]["visible"] + problem["sizes"].get("hidden", [])
                calls = "".join(call_at(problem, size) for size in sizes)
                name = f"{folder}_{path.stem}"
                (directory / f"{name}.cu").write_text(source + HARNESS + calls + '  std::printf("HARNESS done\\n");\n}\n')
                manifest.writerow((name, folder, interpreter, " ".join(lines)))
    print(f"next, where the GPU is: {pathlib.Path(sys.argv[0]).name} run {directory}", file=sys.stderr)


RUNNING, RUNNING_LOCK = set(), threading.Lock()  # process groups


def end_all(*_):
    """On a signal: a kernel of a killed tool would keep the device busy for whoever has it next."""
    with RUNNING_LOCK:
        for group in RUNNING:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        os._exit(1)


def execute(command, seconds):
    """Output, seconds, and the exit status: None after a time-out. Ends all processes that it started."""
    began = time.monotonic()
    with RUNNING_LOCK:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        RUNNING.add(process.pid)
    try:
        output, _ = process.communicate(timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        status = None
    with RUNNING_LOCK:
        RUNNING.discard(process.pid)
    return output.decode(errors="replace"), time.monotonic() - began, status


def compile_one(directory, name, arguments):
    binary = directory / f"{name}.out"
    if binary.exists():
        return None
    partial = directory / f"{name}.{os.getpid()}.partial"
    command = [arguments.nvcc, "-lineinfo", "-O3", "-std=c++17", f"-arch={arguments.arch}", "--cudart", "shared", "-o",
               str(partial), str(directory / f"{name}.cu")]
    output, _, status = execute(command, 240)
    if status != 0:
        return "not compiled: " + " ".join(output.split())[:200]
    os.replace(partial, binary)
    return None


def judge_output(output, status, name, lines):
    """The outcome, the errors, whether a marked line is named, the tool's first message."""
    summary = re.findall(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", output)
    errors = sum(int(a or b) for a, b in summary)
    messages = [line[10:].strip() for line in output.splitlines() if line.startswith("========= ")]
    messages = [line for line in messages if line and not re.match(r"COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK S", line)]
    named = {int(line) for line in re.findall(re.escape(name) + r"\.cu:(\d+)", output)}
    line_named = "yes" if named & lines else "no" if named else ""
    if status is None:
        outcome = "timeout"
    elif not summary:
        outcome = "failed"
    else:
        outcome = "found" if errors else "nothing"
    first = messages[0] if messages else " ".join(output.split())[-160:] if outcome == "failed" else ""
    return outcome, errors, line_named, first[:200]


def run_one(directory, entry, arguments, done):
    """Rows of results.csv for one kernel."""
    name = entry["name"]
    wanted = [tool for tool in arguments.tools if (name, tool) not in done]
    if not wanted:
        return []
    failure = compile_one(directory, name, arguments)
    if failure or arguments.compile_only:
        return [(name, tool, "not_compiled", 0, "", "0", failure) for tool in wanted] if failure else []
    rows = []
    lines = {int(line) for line in entry["lines"].split()}
    for tool in wanted:
        command = [arguments.sanitizer, "--tool", tool, "--print-limit", "20"]
        if tool == "racecheck":
            command += ["--racecheck-report", "all"]
        if tool == "memcheck":
            command += ["--report-api-errors", "no"]
        output, seconds, status = execute(command + [str(directory / f"{name}.out")], arguments.seconds)
        outcome, errors, line_named, first = judge_output(output, status, name, lines)
        rows.append((name, tool, outcome, errors, line_named, f"{seconds:.1f}", first))
    return rows


def read(path):
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run(directory, arguments):
    manifest, results = read(directory / "manifest.csv"), directory / "results.csv"
    if not manifest:
        sys.exit(f"compute_sanitizer: {directory}/manifest.csv is missing: run `generate {directory}` first")
    for program in [arguments.nvcc] + ([] if arguments.compile_only else [arguments.sanitizer]):
        if shutil.which(program) is None:
            sys.exit(f"compute_sanitizer: there is no {program}: name it with --nvcc or --sanitizer")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end_all)
    done = {(row["name"], row["tool"]) for row in read(results)}
    fresh = not results.exists()
    deadline = time.monotonic() + arguments.budget
    with open(results, "a", newline="") as file, ThreadPoolExecutor(arguments.jobs) as pool:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(RESULTS)

        lock = threading.Lock()

        def task(entry):
            if time.monotonic() > deadline:
                return 1
            rows = run_one(directory, entry, arguments, done)
            with lock:
                writer.writerows(rows)
                file.flush()
            return 0

        left = sum(pool.map(task, manifest))
    if left:
        print(f"{left} kernels are left: the same command goes on with them", file=sys.stderr)


def table(directory):
    by_name = {}
    for row in read(directory / "results.csv"):
        found = f"{row['errors']} errors" + (" @line" if row["line_named"] == "yes" else "")
        cell = {"found": found, "nothing": "-"}.get(row["outcome"], row["outcome"])
        by_name.setdefault(row["name"], {})[row["tool"]] = cell
    writer = csv.writer(sys.stdout)
    writer.writerow(("kernel", "folder", "interpreter", *TOOLS))
    totals = {}
    for entry in read(directory / "manifest.csv"):
        cells = [by_name.get(entry["name"], {}).get(tool, "") for tool in TOOLS]
        writer.writerow((entry["name"], entry["folder"], entry["interpreter"], *cells))
        total = totals.setdefault(entry["folder"], [0] * (len(TOOLS) + 3))
        finds = ["error" in cell for cell in cells]
        ours = entry["interpreter"] not in ("correct", "right", "unsupported")
        for i, value in enumerate([True, ours, *finds, any(finds)]):
            total[i] += value
    for folder, total in totals.items():
        print(f"{folder}: {total[0]} kernels; found by the interpreter {total[1]}, " +
              ", ".join(f"{tool} {count}" for tool, count in zip(TOOLS, total[2:])) + f", any of these {total[-1]}",
              file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("generate", "run", "table"))
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--folders", nargs="+", default=["bugs", "honest"], help="of tests/judging (generate)")
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=40, help="for a kernel under a tool (default 40)")
    parser.add_argument("--budget", type=float, default=400, help="seconds after which no kernel is begun (default 400)")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--sanitizer", default=shutil.which("compute-sanitizer") or
                        "/usr/local/cuda/bin/compute-sanitizer")
    parser.add_argument("--compile-only", action="store_true", help="run: only what needs no GPU")
    arguments = parser.parse_args()
    if arguments.command == "generate":
        generate(arguments.directory, arguments.folders)
        return
    if arguments.command == "run":
        run(arguments.directory, arguments)
    if not arguments.compile_only:
        table(arguments.directory)


if __name__ == "__main__":
    main()
