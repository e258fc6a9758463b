"""Imports the problems of this folder and looks at what comes of each. Ends with 77 (skipped) where PyTorch is missing.

usage: import_test.py BUILD_FOLDER
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

REASONS = {
    "kb_l1_011_syntax_error": "not Python: ",
    "kb_l1_012_no_model": "defines no Model",
    "kb_l1_013_forward_raises": "ValueError: no such axis",
    "kb_l1_014_downloads": "it downloads something: ",
    "kb_l1_015_two_outputs": "forward returns a tuple, not one tensor",
    "kb_l1_016_random": "forward draws random numbers (bernoulli_)",
    "kb_l1_017_constant": "degenerate: the output is the same for all inputs and weights",
    "kb_l1_018_too_much_memory": "it needs more memory than the import may take (--memory)",
    "kb_l1_019_ends_its_process": "its process ended without a word",
    "kb_l1_020_keeps_state": "forward keeps state: ",
}


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, "KGRPO_PYTHON": sys.executable})


def main():
    host = os.path.join(sys.argv[1], "bin", "kgrpo-host")
    try:
        import einops, numpy, torch  # noqa: F401, E401
    except ImportError as error:
        print(f"skipped: {sys.executable} has no PyTorch to import with ({error})")
        sys.exit(77)
    failures = []

    def expect(condition, what):
        if not condition:
            failures.append(what)

    with tempfile.TemporaryDirectory() as out:
        words = (host, "problems", "import", "kernelbench", os.path.join(HERE, "problems"), "--out", out, "--sizes", "small",
                 "--json")
        done = run(*words)
        expect(done.returncode == 0, f"the import ended with {done.returncode}: {done.stderr}")
        rows = {row["name"]: row for row in json.loads(done.stdout)}
        for name, reason in REASONS.items():
            expect(rows[name]["status"] == "refused", f"{name} was imported")
            expect(rows[name].get("reason", "").startswith(reason), f"{name}: {rows[name].get('reason')}")
        imported = sorted(name for name, row in rows.items() if row["status"] == "imported")
        expect(imported == ["kb_l1_001_scaled_rows", "kb_l1_002_symmetric_product", "kb_l1_003_conv_norm_pool",
                            "kb_l1_004_chain", "kb_l1_005_upsampled", "kb_l1_021_row_softmax",
                            "kb_l1_022_row_distances", "kb_l1_023_prefix_products", "kb_l1_024_hinge_loss",
                            "kb_l1_025_column_peaks", "kb_l1_026_nearly_alike", "kb_l1_027_many_weights",
                            "kb_l1_028_depthwise"], f"imported: {imported}")
        expect(all(rows[name]["reference"] == "generated" for name in imported), "a reference is missing")
        expect(all(rows[name]["taped"] for name in imported), "weights are not replayed bit for bit")
        # What ignores its inputs passes, since rows at the original size are long; at the small sizes it would not.
        flags = {name: rows[name]["flags"] for name in imported if rows[name]["flags"]}
        expect(flags == {"kb_l1_021_row_softmax": ["a constant passes KernelBench's tolerance",
                                                   "zeros pass KernelBench's tolerance"]}, f"flags: {flags}")
        # 34 weights are one parameter of the launch function, an array of pointers.
        with open(os.path.join(out, "kb_l1_027_many_weights", "reference.cu"), encoding="utf-8") as file:
            source = file.read()
        expect("void launch(const float* x, const float* const* weights, float* output" in source, "no list of weights")
        expect(source.count(" = weights[") == 34 and "layers_16_bias = weights[33];" in source, "the list's members")
        golden = os.path.join(sys.argv[1], "test_data", "import_kernelbench", "offline_style")
        for file in sorted(os.listdir(golden)):
            with open(os.path.join(golden, file), encoding="utf-8") as expected, \
                    open(os.path.join(out, "kb_l1_" + file[:-3], "reference.cu"), encoding="utf-8") as found:
                expect(expected.read() == found.read(), f"{file} is not the reference that was generated")
        expect("10/23 problems, " in done.stderr and "23/23 problems, " in done.stderr, f"no progress: {done.stderr}")
        # Imported again, nothing is done anew.
        stamp = os.stat(os.path.join(out, "kb_l1_004_chain", "problem.yaml")).st_mtime_ns
        expect(run(*words).returncode == 0, "a second import failed")
        expect(os.stat(os.path.join(out, "kb_l1_004_chain", "problem.yaml")).st_mtime_ns == stamp, "imported again")
        # With more memory a problem that was refused for want of it may succeed.
        expect(run(*words, "--only", "4", "--memory", "11").returncode == 0, "an import with other memory failed")
        expect(os.stat(os.path.join(out, "kb_l1_004_chain", "problem.yaml")).st_mtime_ns > stamp,
               "not imported again with other memory")
        check = run(host, "problems", "check", os.path.join(out, "kb_*"))
        # At sizes this small a reference is too short to time, which is a finding.
        expect(check.returncode in (0, 1), f"problems check: {check.stdout}{check.stderr}")
        expect(" 0 unreadable" in check.stderr, f"problems check: {check.stdout}{check.stderr}")
        expect("reference_wrong" not in check.stdout, f"problems check: {check.stdout}{check.stderr}")
        expect("forward draws random numbers" in check.stdout, "a refusal is not shown")
        # As a suite: references, one of them replaced by zeros.
        kernels = os.path.join(out, "kernels")
        os.makedirs(kernels)
        for name in imported:
            with open(os.path.join(out, name, "reference.cu"), encoding="utf-8") as file:
                source = file.read()
            if name == "kb_l1_004_chain":
                source = source.replace("output[i] = ", "output[i] = 0.0f * ")
            with open(os.path.join(kernels, name + ".cu"), "w", encoding="utf-8") as file:
                file.write(source)
        suite = run(host, "eval", "suite", out, "--kernels", kernels, "--json")
        expect(suite.returncode == 0, f"eval suite: {suite.stderr}")
        result = json.loads(suite.stdout)
        verdicts = {row["problem"]: row["verdict"] for row in result["results"]}
        expect(verdicts == {**{name: "correct" for name in imported}, "kb_l1_004_chain": "wrong"}, f"{verdicts}")
        expect(result["refused_problems"] == len(REASONS), "refused problems are counted")
        expect(result["groups"][0]["correct"] == 12, f"{result['groups'][0]}")
        expect(run(host, "eval", "suite", out, "--kernels", kernels, "--json").stdout == suite.stdout,
               "a second call differs")
    # Half precision is compared by 1e-2, which outputs pass that 1e-4 tells apart.
    with tempfile.TemporaryDirectory() as out:
        for precision, flagged in (("fp32", []), ("bf16", ["a constant passes KernelBench's tolerance"])):
            done = run(host, "problems", "import", "kernelbench", os.path.join(HERE, "problems"), "--out", out, "--sizes",
                       "small", "--only", "26", "--precision", precision, "--json")
            (row,) = json.loads(done.stdout)
            expect(row["flags"] == flagged, f"{precision}: {row['flags']}")
    # At KernelBench's own sizes: shapes by the meta device, and PyTorch's own computation for a GPU to time.
    with tempfile.TemporaryDirectory() as out:
        done = run(host, "problems", "import", "kernelbench", os.path.join(HERE, "problems"), "--out", out, "--sizes",
                   "original", "--only", "1,2,3,4,5", "--json")
        rows = json.loads(done.stdout)
        expect(done.returncode == 0 and len(rows) == 5, f"--sizes original: {len(rows)} rows, {done.stderr}")
        for row in rows:
            expect(row["status"] == "imported", f"at the original size: {row}")
            expect(os.path.exists(os.path.join(out, row["name"], "oracle", "eager.pt")), f"{row['name']}: no eager.pt")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{'failed' if failures else 'passed'}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
