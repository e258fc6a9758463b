"""`problems new --torch`: a PyTorch function becomes the oracle. Ends with 77 (skipped) where PyTorch is missing.

usage: trace_function_test.py BUILD_FOLDER
"""
import json
import os
import subprocess
import sys
import tempfile

KERNEL = """
__global__ void rmsnorm_kernel(half* out, const half* x, const half* weight, float epsilon, int cols) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  float own = 0;
  for (int c = threadIdx.x; c < cols; c += 256) {
    float v = __half2float(x[blockIdx.x * cols + c]);
    own += v * v;
  }
  atomicAdd(&sum, own);
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += 256)
    out[blockIdx.x * cols + c] =
        __float2half(__half2float(x[blockIdx.x * cols + c]) * rsqrtf(sum / cols + epsilon) * __half2float(weight[c]));
}
void rmsnorm(half* out, const half* x, const half* weight, float epsilon, int rows, int cols, cudaStream_t stream) {
  rmsnorm_kernel<<<rows, 256, 0, stream>>>(out, x, weight, epsilon, cols);
}
"""
FUNCTIONS = """
import torch
def rmsnorm(x, weight, epsilon):
    v = x.float()
    return (v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + epsilon)).to(torch.float32) * weight
def wrong(x, weight):
    return x * weight
def two(x, weight):
    return x, weight
def small(x, weight):
    return weight
def branches(x, weight):
    return x * weight if x.flatten()[0] > 0 else x + weight
def strange(x, weight, momentum):
    return x
"""


def main():
    build = sys.argv[1]
    try:
        import torch
    except ImportError as error:
        print(f"skipped: {sys.executable} has no PyTorch ({error})")
        sys.exit(77)
    failures = []

    def expect(condition, what):
        if not condition:
            failures.append(str(what))

    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("rms.cu", KERNEL), ("ref.py", FUNCTIONS)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)

        def run(*words):
            return subprocess.run([os.path.join(build, "bin", "kgrpo-host"), *words], cwd=folder, capture_output=True, text=True)

        def draft(function, out):
            return run("problems", "new", "rms.cu", "--out", out, "--size", "rows=4096", "--size", "cols=1024", "--value",
                       "epsilon=1e-5", "--shape", "x=rows,cols", "--shape", "out=rows,cols", "--torch", function,
                       "--python", sys.executable)

        good = draft("ref.py", "rms")
        expect(good.returncode == 0, good.stderr)
        expect("  oracle   rmsnorm of ref.py, traced in float64\n" in good.stdout, good.stdout)
        x = torch.randn(33, 100, dtype=torch.float64)
        got = torch.jit.load(os.path.join(folder, "rms", "oracle", "visible_1.pt"))(x, torch.ones(100, dtype=torch.float64))
        got = got[0] if isinstance(got, tuple) else got
        wanted = x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        expect(float((got - wanted).abs().max()) < 1e-12, f"not in float64: {got.dtype} {float((got - wanted).abs().max())}")
        for function, codes in (("ref.py", []), ("ref.py:wrong", ["reference_wrong"])):
            out = "rms" if not codes else "wrong"
            if codes:
                expect(draft(function, out).returncode == 0, function)
            checked = run("problems", "check", "--json", out)
            found = [finding["code"] for finding in json.loads(checked.stdout)[0]["findings"]]
            expect(found == codes, f"{function}: {found} {checked.stdout}")
        # The user's own file is a candidate.
        judged = json.loads(run("eval", "kernel", "rms.cu", "--problem", "rms", "--json").stdout)
        expect(judged["verdict"] == "correct", judged)
        for function, message in (
                ("two", "two returns 2 tensors, and the kernel writes 1: out"),
                ("small", "small returns out as [256], and the problem has [5, 256]"),
                ("branches", "branches: out depends on values in a way that a trace does not keep"),
                ("strange", "the parameter momentum of strange is none of the problem's: x, weight, "),
                ("none", "choose one of its functions by --torch ref.py:NAME (rmsnorm, wrong, two, small, branches, strange)")):
            refused = draft("ref.py:" + function, "refused")
            expect(refused.returncode == 3 and message in refused.stderr, f"{function}: {refused.stderr}")
            expect(not os.path.exists(os.path.join(folder, "refused")), "a refused draft left a folder")
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
