"""examples/trl/train.py against a service of evaluator_sim: the toy learns. Exit code 77: torch or trl is not installed.

usage: trl_example.py KGRPO_HOST    (run by ctest)
"""
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

source = pathlib.Path(__file__).resolve().parents[2]
if subprocess.run([sys.executable, "-c", "import torch, trl"], stderr=subprocess.DEVNULL).returncode != 0:
    print("skipped: %s has no torch and trl" % sys.executable)
    sys.exit(77)
service = subprocess.Popen([sys.argv[1], "serve", "--listen", "127.0.0.1:0", "--problems", "problems/transpose"],
                           cwd=source, stdout=subprocess.PIPE, text=True)
try:
    address = re.search(r"http://\S+", service.stdout.readline()).group()
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([sys.executable, "examples/trl/train.py", "--server", address, "--output", folder], cwd=source,
                             stdout=subprocess.PIPE, text=True, check=True)
finally:
    service.send_signal(signal.SIGTERM)
    assert service.wait(60) == 0
print(ran.stdout.splitlines()[-1])
first, last = map(float, re.findall(r"-?\d+\.\d+", ran.stdout.splitlines()[-1]))
assert last > first + 1, "it learns nothing"
