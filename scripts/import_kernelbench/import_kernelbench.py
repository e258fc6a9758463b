#!/usr/bin/env python3
"""Imports KernelBench: `kgrpo-host problems import kernelbench PATH --out DIR` runs this; docs/kernelbench.md describes it.

Each problem is imported by a process of its own, since the problems' code is executed: a crash, a hang or a lack of
memory is that problem's row in the summary. What OUT holds already, from the same sources and options, is kept.
"""
import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LINE_EVERY = 10  # problems per progress line, if progress goes to a file
sys.path.insert(0, HERE)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="kgrpo-host problems import",
                                     description="Import a data set of problems. A stopped import continues where it was.",
                                     epilog="example: kgrpo-host problems import kernelbench KernelBench --out imported --level 1")
    parser.add_argument("format", choices=["kernelbench"], help="what PATH is")
    parser.add_argument("path", metavar="PATH", help="a clone of KernelBench, or a folder of its parquet files")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the problem folders are written")
    parser.add_argument("--level", default="1,2,3", help="which levels (default: 1,2,3)")
    parser.add_argument("--only", default="", metavar="N,N...", help="only problems of these numbers")
    parser.add_argument("--precision", choices=["fp32", "fp16", "bf16"], default="fp32")
    parser.add_argument("--sizes", choices=["original", "small"], default="original",
                        help="the timing size: KernelBench's, or one that suits a machine without a GPU")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--memory", type=float, default=10, metavar="GB", help="of one problem's process (default: 10)")
    parser.add_argument("--seconds", type=float, default=400, help="of one problem's process (default: 400)")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def fail(message, code=3):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)


def import_torch():
    try:
        import torch  # noqa: F401
        import numpy  # noqa: F401
    except ImportError as error:
        fail(f"the import runs the problems in PyTorch, and {sys.executable} cannot load it ({error}).\n"
             f"  Install it there: {sys.executable} -m pip install torch==2.11.0 numpy einops\n"
             "  or choose another Python by KGRPO_PYTHON. Judging needs none of this.", 4)
    torch.set_num_threads(1)


def warm_up():
    """What PyTorch loads at the first use of these, once here and not once a child: 3 s each."""
    import torch
    from record import Recorder
    from torch.utils.flop_counter import FlopCounterMode
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False), Recorder():
        torch.nn.Conv1d(2, 2, 1)(torch.rand(2, 2, 2))
    torch.jit.trace(lambda x: x + 1, torch.rand(2), check_trace=False)


def find_problems(path, levels):
    """(level, number, file, text) of each, in order."""
    found = []
    if not os.path.exists(path):
        fail(f"{path}: there is no such folder; clone https://github.com/ScalingIntelligence/KernelBench there")
    for root in (path, os.path.join(path, "KernelBench")):
        for level in levels:
            folder = os.path.join(root, f"level{level}")
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                match = re.match(r"(\d+)_.*\.py$", name)
                if match:
                    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                        found.append((level, int(match[1]), f"level{level}/{name}", file.read()))
    if not found:
        found = read_parquet(path, levels)
    if not found:
        fail(f"{path}: holds no level*/N_*.py and no level*.parquet of levels {', '.join(map(str, levels))}")
    return sorted(found, key=lambda one: one[:2])


def read_parquet(path, levels):
    files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names
             if name.endswith(".parquet")]
    if not files:
        return []
    try:
        from pyarrow import parquet
    except ImportError:
        fail(f"{path}: parquet files are read by pyarrow: {sys.executable} -m pip install pyarrow", 4)
    found = []
    for file in sorted(files):
        for row in parquet.read_table(file).to_pylist():
            if row.get("level") in levels:
                found.append((row["level"], row["problem_id"], f"level{row['level']}/{row['name']}.py", row["code"]))
    return found


def digest_of_scripts():
    digest = hashlib.sha256()
    for name in sorted(os.listdir(HERE)):
        if name.endswith(".py"):
            with open(os.path.join(HERE, name), "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


class Job:
    """A problem being imported by a child."""

    def __init__(self, problem, options, out):
        self.problem, self.started = problem, time.time()
        self.row_file = row_file(out, problem)
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._child(options, out)

    def _child(self, options, out):
        code = 1
        try:
            os.setsid()
            sink = os.open(os.devnull, os.O_WRONLY)
            if not options["debug"]:
                os.dup2(sink, 1)
                os.dup2(sink, 2)
            resource.setrlimit(resource.RLIMIT_DATA, (int(options["memory"] * 2**30),) * 2)
            from one_problem import import_problem
            row = import_problem(*self.problem, options, out)
            write_row(self.row_file, {**row, "key": options["key"] + text_digest(self.problem[3])})
            code = 0
        finally:
            os._exit(code)

    def kill(self):
        """Ends the child and what it started."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # the child has not started its session yet
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def text_digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def row_file(out, problem):
    return os.path.join(out, ".import", f"l{problem[0]}_{problem[1]:03d}.json")


def write_row(file, row):
    with open(file + ".new", "w", encoding="utf-8") as stream:
        json.dump(row, stream)
    os.replace(file + ".new", file)


def read_row(file, key):
    try:
        with open(file, encoding="utf-8") as stream:
            row = json.load(stream)
        return row if row["key"] == key else None
    except (OSError, ValueError, KeyError):
        return None


def ended(job, status, out, options):
    """The row of a job whose process ended."""
    key = options["key"] + text_digest(job.problem[3])
    row = read_row(job.row_file, key) if status == 0 else None
    if row is None:
        why = "its process ended without a word"
        if status == "time":
            why = f"it took longer than {options['seconds']:.0f} s"
        elif status and os.WIFSIGNALED(status):
            why = f"its process was ended by {signal.Signals(os.WTERMSIG(status)).name}"
        from one_problem import Importer, working_folder
        importer = Importer(*job.problem, options)
        shutil.rmtree(working_folder(out, importer.name), ignore_errors=True)
        importer.refuse(os.path.join(out, importer.name), why)
        row = {"level": job.problem[0], "number": job.problem[1], "name": importer.name, "file": job.problem[2],
               "status": "refused", "reason": why, "key": key}
        write_row(job.row_file, row)
    return row


def run_all(problems, options, out, jobs):
    """The rows of all problems, in order. No child outlives it."""
    running = []
    try:
        rows = run_jobs(list(problems), running, options, out, jobs)
    finally:
        for job in running:  # the children have their own sessions, so Ctrl-C does not reach them
            job.kill()
    return sorted(rows, key=lambda row: (row["level"], row["number"]))


def run_jobs(waiting, running, options, out, jobs):
    rows, total, started = [], len(waiting), time.time()
    terminal = sys.stderr.isatty()
    while waiting or running:
        while waiting and len(running) < jobs:
            problem = waiting.pop(0)
            row = read_row(row_file(out, problem), options["key"] + text_digest(problem[3]))
            if row is not None and os.path.isdir(os.path.join(out, row["name"])):
                rows.append(row)
                continue
            running.append(Job(problem, options, out))
        for job in list(running):
            pid, status = os.waitpid(job.pid, os.WNOHANG)
            if pid == 0 and time.time() - job.started > options["seconds"]:
                job.kill()
                pid, status = job.pid, "time"
            if pid:
                running.remove(job)
                rows.append(ended(job, status, out, options))
                if not terminal and (len(rows) % LINE_EVERY == 0 or len(rows) == total):
                    refused = sum(row["status"] == "refused" for row in rows)
                    print(f"{len(rows)}/{total} problems, {refused} refused, {time.time() - started:.0f} s", file=sys.stderr,
                          flush=True)
                if terminal:
                    print(f"\r{len(rows)}/{total} {rows[-1]['name'][:60]:60}", end="", file=sys.stderr, flush=True)
        time.sleep(0.02)
    if terminal:
        print("\r" + " " * 80 + "\r", end="", file=sys.stderr)
    return rows


def print_summary(rows, seconds):
    print(f"{'LEVEL':6}{'PROBLEMS':>9}{'IMPORTED':>9}{'REFUSED':>9}{'FLAGGED':>9}{'REFERENCES':>12}")
    for level in sorted({row["level"] for row in rows}):
        of_level = [row for row in rows if row["level"] == level]
        imported = [row for row in of_level if row["status"] == "imported"]
        print(f"{level:<6}{len(of_level):>9}{len(imported):>9}{len(of_level) - len(imported):>9}"
              f"{sum(bool(row['flags']) for row in imported):>9}"
              f"{sum(row['reference'] == 'generated' for row in imported):>12}")
    for title, chosen in (("refused", [(r, r["reason"]) for r in rows if r["status"] == "refused"]),
                          ("flagged", [(r, "; ".join(r["flags"])) for r in rows if r.get("flags")]),
                          ("without a reference kernel", [(r, r["reference"].removeprefix("none: ")) for r in rows
                                                          if r.get("reference", "generated") != "generated"])):
        if chosen:
            print(f"\n{title}:")
            for row, why in chosen:
                print(f"  {row['name']:40} {why}")
    cpu = sum(row.get("cpu_seconds", 0) for row in rows)
    print(f"\n{len(rows)} problems in {seconds:.0f} s ({cpu:.0f} s of CPU time)")


def print_licence(path):
    for name in ("LICENSE", "LICENSE.txt", "LICENSE.md"):
        for folder in (path, os.path.dirname(os.path.abspath(path))):
            file = os.path.join(folder, name)
            if os.path.isfile(file):
                with open(file, encoding="utf-8", errors="replace") as stream:
                    lines = [line.strip() for line in stream if line.strip()]
                print(f"licence of the problems: {' '.join(lines[:2])} ({file})", file=sys.stderr)
                return
    print("licence of the problems: KernelBench is published under the MIT licence; this copy holds no LICENSE file",
          file=sys.stderr)


def main():
    arguments = parse_arguments()
    started = time.time()
    if not re.fullmatch(r"[1-4](,[1-4])*", arguments.level):
        fail(f"--level {arguments.level}: expected numbers such as 1,2,3", 2)
    levels = sorted({int(level) for level in arguments.level.split(",")})
    if 4 in levels:
        fail("--level 4: its problems download weights from Hugging Face; levels 1, 2 and 3 can be imported")
    problems = find_problems(arguments.path, levels)
    if arguments.only:
        if not re.fullmatch(r"\d+(,\d+)*", arguments.only):
            fail(f"--only {arguments.only}: expected numbers such as 1,7", 2)
        numbers = {int(number) for number in arguments.only.split(",")}
        problems = [problem for problem in problems if problem[1] in numbers]
    import_torch()
    import one_problem  # noqa: F401  imported before the forks, so that no child loads it again
    warm_up()
    print_licence(arguments.path)
    os.makedirs(os.path.join(arguments.out, ".import"), exist_ok=True)
    options = {"precision": arguments.precision, "sizes": arguments.sizes, "seconds": arguments.seconds,
               "memory": arguments.memory, "debug": arguments.debug, "search_seconds": min(20.0, arguments.seconds / 4)}
    options["key"] = hashlib.sha256((digest_of_scripts() + json.dumps(options, sort_keys=True)).encode()).hexdigest()[:16]
    try:
        rows = run_all(problems, options, arguments.out, max(1, arguments.jobs))
    except KeyboardInterrupt:
        fail("interrupted; the same command goes on from here", 130)
    if arguments.json:
        print(json.dumps([{k: v for k, v in row.items() if k != "key"} for row in rows], indent=1))
    else:
        print_summary(rows, time.time() - started)


if __name__ == "__main__":
    main()
