"""Builds the wheel twice (equal bytes), installs it into a new environment that cannot be written to, and runs it there as
a stranger would: a verdict, problems and completion of the package, and the messages for what is missing. Ends with 77
(skipped) where patchelf is missing.

usage: wheel_test.py BUILD_FOLDER
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
if not shutil.which("patchelf"):
    print("skipped: patchelf is not installed")
    sys.exit(77)


def run(*words, code=0, **variables):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("KGRPO_", "CUDA_", "VIRTUAL_ENV", "LD_"))}
    env.update(KGRPO_CACHE_DIR=str(folder / "cache"), **variables)
    done = subprocess.run(list(map(str, words)), env=env, cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, "%s ended with %d:\n%s%s" % (words, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    wheels = []
    for out in ("one", "two"):
        run(ROOT / "scripts/wheel", "--build", BUILD, "--out", folder / out)
        wheels.append(next((folder / out).glob("kgrpo-*.whl")))
    digests = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels]
    assert digests[0] == digests[1], "two builds differ"
    assert digests[0] in (folder / "one/SHA256SUMS").read_text()
    assert wheels[0].stat().st_size < 40e6, wheels[0].stat().st_size
    minor = int(wheels[0].name.split("manylinux_2_")[1].split("_")[0])
    assert minor <= 36, wheels[0].name

    run(sys.executable, "-m", "venv", folder / "env")
    run(folder / "env/bin/pip", "install", "-q", "--no-index", "--find-links", folder / "one", "kgrpo")
    site = next((folder / "env/lib").glob("python3*")) / "site-packages"
    for path in [site, *site.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        kgrpo = folder / "env/bin/kgrpo"
        kernel = folder / "mine.cu"
        kernel.write_text((ROOT / "problems/transpose/reference.cu").read_text())
        cuda = os.environ.get("CUDA_HOME") or next(filter(os.path.exists, (
            "/usr/local/cuda", str(next(iter((ROOT / ".venv/lib").glob("python3*")), ROOT) / "site-packages/nvidia/cu13"))), "")
        if cuda:
            judged = run(kgrpo, "eval", "kernel", kernel, "--problem", "transpose", CUDA_HOME=cuda)
            assert judged.startswith("verdict    correct\n"), judged
            assert "Usage" in run(kgrpo, "eval", "--help")
        broken = run(kgrpo, "eval", "kernel", kernel, "--problem", "transpose", code=4, CUDA_HOME="/nowhere")
        assert "/nowhere" in broken, broken
        assert "softmax_long" in run(kgrpo, "problems", "list", CUDA_HOME=cuda or "/usr")
        listed = run(kgrpo, "plugins", "list")
        assert "reward_speedup" in listed and "pip install 'kgrpo[train]'" in listed, listed
        assert "trains a small policy" in run(kgrpo, "quickstart", "--help").lower()
        run(kgrpo, "quickstart", folder / "first", "--nonsense", code=2)
        pipeline = (folder / "first/quickstart.yaml").read_text()
        assert str(site / "kgrpo/models/tiny") in pipeline and str(folder / "first/run") in pipeline, pipeline
    finally:
        for path in [site, *site.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
print("passed")
