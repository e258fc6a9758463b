"""Many small evaluations through `serve`, a part of them hostile: memory, descriptors, temporary files and latency.

    python3 bench/serve_soak.py build/bin/kgrpo-host [--count 2000] [--hostile 0.1] [--clients 4] [--scratch DIR]

Prints a line every tenth, and the percentiles of honest requests. Exit code 1 if something grew, an honest kernel was not
correct, or the service ended. tests/hostile runs a short form."""
import argparse
import concurrent.futures
import json
import pathlib
import random
import socket
import sys
import tempfile
import threading
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("host")
parser.add_argument("--count", type=int, default=2000)
parser.add_argument("--hostile", type=float, default=0.1)
parser.add_argument("--clients", type=int, default=4)
parser.add_argument("--scratch", default=tempfile.gettempdir() + "/kgrpo-soak")
arguments = parser.parse_args()
sys.argv = [sys.argv[0], "", arguments.host, arguments.scratch]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/hostile"))
import boundary  # noqa: E402
import table  # noqa: E402

TEMPORARY = boundary.SCRATCH / "tmp"
TEMPORARY.mkdir(parents=True, exist_ok=True)
boundary.ENVIRONMENT["TMPDIR"] = str(TEMPORARY)
service = boundary.Service()
draw = random.Random(1)
hostile = list(table.CANDIDATES.items())
clients = list(table.CLIENTS.items())
seconds, lock = [], threading.Lock()


def slow(number):
    """Sends half of a request a byte at a time, or a whole one, and leaves."""
    body = json.dumps({"problem": "affine", "source": table.honest(number)}).encode()
    request = table.HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        if number % 2:
            connection.sendall(request)
        for byte in request[:100] if number % 2 == 0 else b"":
            connection.sendall(bytes([byte]))
            time.sleep(0.01)


def one(number):
    if number % 50 == 49:
        service.raw(draw.choice(clients)[1])
    if number % 100 in (24, 75):
        slow(number)
    if draw.random() < arguments.hostile:
        name, source = hostile[number % len(hostile)]
        boundary.verdict_of(service.client, name, source + "// %d\n" % number)
        return
    begin = time.monotonic()
    verdict = boundary.verdict_of(service.client, "honest", table.honest(number))
    with lock:
        seconds.append(time.monotonic() - begin)
    boundary.check(verdict == "correct", "honest kernel", number, "was", verdict)


first = None
begin = time.monotonic()
with concurrent.futures.ThreadPoolExecutor(arguments.clients) as pool:
    for tenth in range(10):
        share = range(tenth * arguments.count // 10, (tenth + 1) * arguments.count // 10)
        list(pool.map(one, share))
        now = service.settled()
        first = first or now
        print("%6d  %6.0f s  memory %4.0f MiB  descriptors %3.0f  child processes %2d  temporary files %2d"
              % (share.stop, time.monotonic() - begin, now[0] / 2**20, now[1], now[2], len(list(TEMPORARY.iterdir()))),
              flush=True)
boundary.same(first, now, "soak")
service.stop()
boundary.check(not list(TEMPORARY.iterdir()), "left behind:", *TEMPORARY.iterdir())
seconds.sort()
at = lambda part: 1000 * seconds[min(len(seconds) - 1, int(part * len(seconds)))]  # noqa: E731
print("%d evaluations, %d of them honest: p50 %.0f ms, p90 %.0f ms, p99 %.0f ms"
      % (arguments.count, len(seconds), at(0.5), at(0.9), at(0.99)))
