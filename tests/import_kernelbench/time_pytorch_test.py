"""Times two problems of this folder on the CPU, eager and compiled, and lets `eval suite` read the file. Ends with 77
(skipped) where PyTorch is missing.

usage: time_pytorch_test.py BUILD_FOLDER
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "../../python/time_pytorch.py")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True)


def main():
    try:
        import numpy, torch  # noqa: F401, E401
    except ImportError as error:
        print(f"skipped: {sys.executable} has no PyTorch to time ({error})")
        sys.exit(77)
    failures = []

    def expect(condition, what):
        if not condition:
            failures.append(what)

    with tempfile.TemporaryDirectory() as out:
        problems, file = os.path.join(HERE, "problems"), os.path.join(out, "times.json")
        common = (sys.executable, SCRIPT, problems, "--device", "cpu", "--trials", "3", "--out")
        done = run(*common, file, "--mode", "eager", "--only", "4,21")
        expect(done.returncode == 0, f"eager ended with {done.returncode}: {done.stderr}")
        rows = json.load(open(file, encoding="utf-8"))["level1"]
        expect(sorted(name.split("_")[0] for name in rows) == ["21", "4"], f"eager: {sorted(rows)}")
        for row in rows.values():
            expect(0 < row["min"] <= row["mean"] <= row["max"] and row["num_trials"] == 3, f"no times: {row}")
        # What is there is not timed again; what cannot run is a line, and the others go on.
        before = open(file, encoding="utf-8").read()
        done = run(*common, file, "--mode", "eager", "--only", "4,13")
        expect(done.returncode == 0 and "1 problems without one" in done.stdout and "no such axis" in done.stdout, done.stdout)
        expect(open(file, encoding="utf-8").read() == before, "a time was taken again")
        compiled = os.path.join(out, "compiled.json")
        done = run(*common, compiled, "--mode", "compile", "--only", "4")
        expect(done.returncode == 0 and os.path.exists(compiled), f"compile: {done.stdout} {done.stderr}")
        if os.path.exists(compiled):
            (row,) = json.load(open(compiled, encoding="utf-8"))["level1"].values()
            expect(row["mode"] == "compile" and row["mean"] > 0, f"compile: {row}")
        suite = os.path.join(out, "suite")
        done = run(sys.executable, os.path.join(HERE, "../../scripts/import_kernelbench/import_kernelbench.py"), "kernelbench", problems, "--out",
                   suite, "--only", "21", "--sizes", "small")
        kernels = os.path.join(out, "kernels")
        os.makedirs(kernels)
        host = os.path.join(sys.argv[1], "bin", "kgrpo-host")
        done = run(host, "eval", "suite", suite, "--kernels", kernels, "--pytorch-times", file, "--json")
        expect(done.returncode == 0 and '"pytorch_hardware": "CPU"' in done.stdout, f"eval did not read the file: {done.stderr}")
    print("\n".join(failures) if failures else "PyTorch's times are taken, kept and read")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
