"""What is judged cannot hurt the judge: every way of table.py against run, eval, optimize and serve.

usage: boundary.py serve|eval|run|optimize KGRPO_HOST SCRATCH [slow]

`slow`: also the oracle that never ends, which takes its two minutes.

The assertion is always the same: a verdict or a dropped round by name, the process alive, nothing lost, memory and
descriptors back to where they were."""
import atexit
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import time

import table

# The plugins of tests/fixtures: a policy and a trainer that cost nothing.
ENVIRONMENT = dict(os.environ, KGRPO_CACHE_DIR=os.path.abspath(sys.argv[3]) + "/cache",
                   KGRPO_PLUGIN_PATH=str(pathlib.Path(sys.argv[2]).resolve().parent.parent / "tests/plugins"))
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from kgrpo_client import Client, ServiceError  # noqa: E402

HOST, SCRATCH = pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()
AFFINE = ROOT / "tests/evaluator/problems/affine"
# Short limits, so that what never ends ends soon.
LIMITS = {"host_seconds": 0.5, "compile_seconds": 10, "warp_instructions": 20_000_000, "cache": False, "workers": 2}
SLOW = ("sleep", "stop itself", "template bomb", "reads no answers", "half a request")  # they end by a limit of time


def check(condition, *what):
    if not condition:
        raise SystemExit("FAILED: " + " ".join(str(one) for one in what))


class Service:
    """kgrpo-host serve of evaluator_sim and one problem."""

    def __init__(self, *options):
        settings = [word for key, value in LIMITS.items() for word in ("--set", "%s=%s" % (key, json.dumps(value)))]
        self.log = open(SCRATCH / "serve.log", "w+")
        self.process = subprocess.Popen(
            [HOST, "serve", "--listen", "127.0.0.1:0", "--problems", AFFINE, "--workers", "2", *settings, *options],
            stdout=subprocess.PIPE, stderr=self.log, text=True, env=ENVIRONMENT)
        atexit.register(self.process.kill)
        line = self.process.stdout.readline()
        check("http://" in line, "serve did not start:", line, self.words())
        self.port = int(line.rsplit(":", 1)[1])
        self.client = Client("http://127.0.0.1:%d" % self.port, wait_seconds=5)

    def words(self):
        self.log.flush()
        return open(self.log.name, errors="replace").read()[-3000:]

    def metrics(self):
        connection = self.raw(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return {name: float(value) for name, value in re.findall(r"^(kgrpo_\w+) (\S+)$", connection, re.M)}

    def raw(self, data, wait=10):
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as connection:
            try:
                connection.sendall(data)
                if data:
                    while part := connection.recv(65536):
                        answer += part
                        if len(answer) > 1 << 22:
                            break
            except OSError:
                pass  # it was refused while it still sent
        return answer.decode(errors="replace")

    def settled(self):
        """Memory, descriptors and child processes when nothing is being done."""
        for _ in range(200):
            now = self.metrics()
            children = len(subprocess.run(["ps", "--ppid", str(self.process.pid), "-o", "pid="], capture_output=True,
                                          text=True).stdout.split())
            if now["kgrpo_requests_active"] <= 1 and now["kgrpo_evaluations_running"] == 0:
                return now["kgrpo_process_resident_bytes"], now["kgrpo_process_open_descriptors"], children
            time.sleep(0.05)
        raise SystemExit("FAILED: the service does not come to rest: %s" % now)

    def stop(self):
        self.process.terminate()
        check(self.process.wait(60) == 0, "serve ended with", self.process.returncode, self.words())


def same(before, after, where):
    """Memory may grow by what a fuller heap keeps; descriptors and processes may not grow."""
    check(after[0] < before[0] * 1.5 + (64 << 20), where, "memory", before[0], "became", after[0])
    check(after[1] <= before[1] + 4, where, "descriptors", before[1], "became", after[1])
    check(after[2] <= before[2] + 2, where, "processes", before[2], "became", after[2])


def verdict_of(client, name, source, problem="affine"):
    try:
        result = client.evaluate(problem, source)
        check(result.verdict, name, "has no verdict")
        return result.verdict
    except ServiceError as error:
        check(error.code in ("not_judged", "invalid", "not_json"), name, "became", error.code, error)
        return error.code


def oracles():
    return [(name, text) for name, text in table.ORACLES.items() if name != "loop" or "slow" in sys.argv]


def with_oracle(name, text):
    folder = SCRATCH / ("oracle_" + re.sub(r"\W", "_", name))
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(AFFINE, folder)
    (folder / "oracle.cc").write_text(table.ORACLE % text)
    (folder / "problem.yaml").write_text((AFFINE / "problem.yaml").read_text().replace("name: affine", "name: " + folder.name))
    return folder


def serve():
    service = Service("--inline-code")
    client = service.client
    check(verdict_of(client, "honest", table.honest()) == "correct", "the honest kernel")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = dict(zip(table.CANDIDATES, pool.map(lambda item: verdict_of(client, *item), table.CANDIDATES.items())))
        before = service.settled()  # what the first ones load stays
        again = {name: source + "// again\n" for name, source in table.CANDIDATES.items() if name not in SLOW}
        for name, verdict in zip(again, pool.map(lambda item: verdict_of(client, *item), again.items())):
            check(verdict == found[name], name, "became", found[name], "and then", verdict)
    print("\n".join("%-22s %s" % item for item in found.items()))
    wrong = [name for name, verdict in found.items()
             if verdict == "correct" and name not in ("forged report", "a megabyte", "4 M registers", "flood of output",
                                                      "assembly", "local arrays", "nul and not UTF-8", "closed wire",
                                                     "large object", "device printf", "warnings")]
    check(not wrong, "judged correct:", wrong)
    same(before, service.settled(), "candidates")
    for name, text in oracles():
        folder = with_oracle(name, text)
        try:
            result = client.evaluate(folder, table.honest())
            check(name in ("output", "words"), "oracle", name, "was judged", result.verdict)
        except ServiceError as error:
            check(error.code == "invalid_problem" and "oracle.cc" in str(error), "oracle", name, error.code, error)
    same(before, service.settled(), "oracles")
    for name, data in table.CLIENTS.items():
        answer = service.raw(data)
        statuses = re.findall(r"^HTTP/1.1 (\d+)", answer, re.M)
        check(all(one[0] in "24" for one in statuses), "client", name, statuses)
    same(before, service.settled(), "clients")
    check(verdict_of(client, "honest", table.honest(1)) == "correct", "the honest kernel afterwards")
    service.stop()


def command(*words, codes=(0,)):
    result = subprocess.run([HOST, *map(str, words)], capture_output=True, text=True, errors="replace", cwd=SCRATCH,
                            env=ENVIRONMENT, timeout=900)
    check(result.returncode in codes, words, "ended with", result.returncode, result.stdout[-1500:], result.stderr[-3000:])
    return result


def evaluate():
    folder = SCRATCH / "kernels"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number, source in enumerate(table.CANDIDATES.values()):
        (folder / ("k%02d.cu" % number)).write_bytes(source.encode(errors="surrogateescape"))
    (folder / "z_honest.cu").write_text(table.honest())
    settings = [word for key, value in LIMITS.items() for word in ("--set", "%s=%s" % (key, json.dumps(value)))]
    result = command("eval", "kernel", folder, "--problem", AFFINE, "--quick", "--json", "--jobs", 2, *settings, codes=(0, 1))
    judged = [json.loads(line) for line in result.stdout.splitlines()]
    check(len(judged) == len(table.CANDIDATES) + 1, "kernels", len(judged), result.stdout[:500])
    check(all(one.get("verdict") or one.get("error") for one in judged), "a kernel without a verdict")
    for name, text in oracles():
        result = command("eval", "kernel", folder / "z_honest.cu", "--problem", with_oracle(name, text), "--quick", *settings,
                         codes=(0, 2, 3))
        check(result.returncode == 0 or "oracle.cc" in result.stderr, "oracle", name, result.stderr)


CODER = '''import sys
sys.path[:0] = [%r, %r]
import table
from kgrpo_plugin import coder, run
sources = list(table.CANDIDATES.values())
state = {"next": 0}
@coder(suggestions=["anything"])
def write(request):
    state["next"] += 1
    if state["next"] %% 2 == 0:
        return {"source": table.honest(state["next"])}
    return {"source": sources[state["next"] // 2 %% len(sources)].encode(errors="replace").decode()}
run()
'''


def pipeline(name, coder, reward="reward: {plugin: reward_speedup}", batch=None):
    (SCRATCH / "coder.py").write_text(CODER % (str(ROOT / "tests/hostile"), str(ROOT / "python")))
    file = SCRATCH / (name + ".yaml")
    file.write_text("\n".join([
        "name: %s" % name, "seed: 1", "output_dir: %s" % (SCRATCH / name),
        "policy: {plugin: fakes, options: {model: random}}", "trainer: {plugin: fakes}",
        coder, "evaluator: {plugin: evaluator_sim, options: %s}" % json.dumps(LIMITS), reward,
        "problems: {train: [%s]}" % AFFINE,
        "loop: {max_steps: 1, workers: 4, batch_size: %d, rounds: 2}" % (batch or len(table.CANDIDATES))]) + "\n")
    shutil.rmtree(SCRATCH / name, ignore_errors=True)
    return file


def rows(folder, table_name="rounds"):
    with sqlite3.connect("file:%s?mode=ro" % (folder / "run.sqlite"), uri=True) as database:
        database.row_factory, database.text_factory = sqlite3.Row, lambda text: text.decode(errors="replace")
        return [dict(row) for row in database.execute("SELECT * FROM " + table_name)]


def program(role, how, seconds=2):
    return "%s: {plugin: %s_program, options: {command: [python3, %s, %s, %s, %s], request_seconds: %d}}" % (
        role, role, ROOT / "tests/programs/faulty.py", how, SCRATCH / "state", {"reward": "score", "coder": "implement"}[role],
        seconds)


def train():
    hostile = "coder: {plugin: coder_program, options: {command: [python3, %s]}}" % (SCRATCH / "coder.py")
    file = pipeline("hostile_run", hostile)
    command("run", file)
    done, dropped = rows(SCRATCH / "hostile_run"), rows(SCRATCH / "hostile_run", "dropped_rounds")
    check(len(done) + len(dropped) >= len(table.CANDIDATES), "rounds", len(done), len(dropped))
    check(all(row["verdict"] for row in done), "a round without a verdict")
    for how in table.PROGRAMS:
        result = command("run", pipeline("program_run", hostile, program("reward", how), batch=4), codes=(0, 1, 3))
        check("faulty.py" in result.stderr or result.returncode == 0, how, result.stderr[-500:])


def optimize():
    hostile = "coder: {plugin: coder_program, options: {command: [python3, %s]}}" % (SCRATCH / "coder.py")
    file = pipeline("hostile_search", hostile)
    out = SCRATCH / "found"
    shutil.rmtree(out, ignore_errors=True)
    command("optimize", AFFINE, "--policy", "uniform", "--pipeline", file, "--evaluations", 2 * len(table.CANDIDATES), "--out", out)
    check((out / "best.cu").exists(), "nothing was found")
    check(all(row["verdict"] for row in rows(out)), "a round without a verdict")


if __name__ == "__main__":
    SCRATCH.mkdir(parents=True, exist_ok=True)
    {"serve": serve, "eval": evaluate, "run": train, "optimize": optimize}[sys.argv[1]]()
