"""kgrpo_mcp - the evaluator as MCP tools for coding agents, over standard input and output. `kgrpo-host mcp` runs it.

    pip install mcp                       # the protocol's SDK, the only dependency
    kgrpo-host mcp                        # in the agent's configuration: command "kgrpo-host", arguments ["mcp"]
    kgrpo-host mcp --server http://10.0.0.7:8421     # kernels are evaluated there; optimise and draft run here

Without --server it starts `kgrpo-host serve` with the shipped problems on a free port of this machine, and ends it at
the end. Tools take source texts and the names that `list_problems` and `draft_problem` return, never paths: an agent's
words open no file.
"""
import argparse
import asyncio
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from kgrpo_client import Client, ServiceError

parser = argparse.ArgumentParser(prog="kgrpo-host mcp", description=__doc__.split("\n\n")[0],
                                 epilog="example: claude mcp add kgrpo -- kgrpo-host mcp")
parser.add_argument("--server", metavar="URL", help="a running service (default: one is started); its token: $KGRPO_TOKEN")
parser.add_argument("--device", metavar="NAME", help="the GPU to judge for (default: the service's first)")
parser.add_argument("--evaluator", metavar="PLUGIN", help="for the service that is started, such as evaluator_cuda")
words = parser.parse_args()  # before the import: help needs no package

try:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError:
    sys.exit("kgrpo-host mcp needs the Python package mcp, 2.0 or newer: pip install mcp (for another Python: set KGRPO_PYTHON)")

HOST = os.environ.get("KGRPO_HOST", "kgrpo-host")  # the program that runs this file sets it
PIPELINE = str(next(folder / "configs/quickstart.yaml" for folder in pathlib.Path(__file__).resolve().parents
                    if (folder / "configs/quickstart.yaml").exists()))  # its coder and evaluator
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
server = MCPServer("kgrpo", instructions="Checks CUDA kernels for errors and races, and times them. list_problems first; "
                   "for a kernel that none of them describes, draft_problem. Then evaluate, explain and optimise.")
address = device = None  # of the service, and of the GPU that it judges for
drafts = {}  # name: folder
scratch = tempfile.mkdtemp(prefix="kgrpo-mcp-")


def problem_of(name):
    if name in drafts:
        return pathlib.Path(drafts[name])
    if not NAME.fullmatch(name):
        raise ToolError("%r is no problem's name: list_problems has them" % name)
    return name


async def ask(call, *arguments, **named):
    """Calls a method of a client on a thread. A cancelled tool ends the request, which the service then drops."""
    client = Client(address)
    try:
        return await asyncio.to_thread(getattr(client, call), *arguments, **named)
    except ServiceError as error:
        raise ToolError(str(error)) from None
    finally:
        client.abort()


async def run(arguments, progress=None, ends=(0,)):
    """The output of a command of kgrpo-host. A cancelled tool ends its process."""
    process = await asyncio.create_subprocess_exec(HOST, *arguments, cwd=scratch, stdin=subprocess.DEVNULL,
                                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        errors = asyncio.ensure_future(process.stderr.read())
        lines = []
        async for line in process.stdout:
            lines.append(line.decode(errors="replace"))
            if progress:
                await progress(lines[-1])
        await process.wait()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.wait()
    if process.returncode not in ends:
        raise ToolError((await errors).decode(errors="replace").strip() or "kgrpo-host ended with %d" % process.returncode)
    return "".join(lines)


def summary(result):
    answer = {"verdict": result.verdict, "correct": result.correct, "device": result.device,
              "found": result.diagnosis, "reference_us": round(result.baseline["seconds"] * 1e6, 3)}
    if result.correct:
        answer.update(kernel_us=round(result.seconds * 1e6, 3), modelled=bool(result.evaluation.get("modelled")))
        if result.speedup is not None:  # of the reference there is none
            answer["speedup"] = round(result.speedup, 3)
    return answer


@server.tool()
async def list_problems(contains: str = "") -> list[dict[str, Any]]:
    """Problems with title, signature of `launch` and sizes. `contains`: only those whose name contains it."""
    names = [n for n in await ask("problems") if contains in n] + [n for n in drafts if contains in n]
    problems = await asyncio.gather(*(ask("problem", problem_of(n)) for n in names))
    return [{"name": n, "title": p["title"], "signature": p["signature"], "task": p["task"], "traits": p["traits"]}
            for n, p in zip(names, problems)]


@server.tool()
async def evaluate(problem: str, source: str, thorough: bool = False, seed: int = 0) -> dict[str, Any]:
    """Compiles one CUDA kernel, checks and times it. `source`: a whole CUDA C++ file that defines the problem's `launch`.

    verdict is "correct", or what failed; found says where, or what bounds the time. Use thorough=True before you trust it.
    """
    return summary(await ask("evaluate", problem_of(problem), source, device, seed=seed, thorough=thorough))


@server.tool()
async def explain(problem: str, source: str = "") -> dict[str, Any]:
    """What a kernel spends its time on: metrics and remarks by source line. Without source: the reference, with its text."""
    of = problem_of(problem)
    result = await ask("evaluate", of, source or None, device)
    answer = dict(summary(result), metrics=result.metrics, remarks=result.evaluation.get("remarks", []))
    if not source:
        answer["source"] = (await ask("problem", of))["source"]
    return answer


@server.tool()
async def compare(problem: str, sources: list[str], thorough: bool = False) -> list[dict[str, Any]]:
    """Evaluates several kernels of one problem; the fastest correct one first. `index` is the place in `sources`."""
    of = problem_of(problem)
    results = await asyncio.gather(*(ask("evaluate", of, s, device, thorough=thorough) for s in sources))
    ranked = [dict(summary(r), index=i) for i, r in enumerate(results)]
    return sorted(ranked, key=lambda one: (not one["correct"], one.get("kernel_us", 0)))


@server.tool()
async def optimise(problem: str, ctx: Context, source: str = "", evaluations: int = 32) -> dict[str, Any]:
    """Searches for a faster kernel by rule-based rewrites (no language model), from `source` or else the reference."""
    folder = tempfile.mkdtemp(dir=scratch)
    of = str(problem_of(problem))
    start = [of]
    if source:
        kernel = pathlib.Path(folder, "start.cu")
        kernel.write_text(source)
        start = [str(kernel), "--problem", of]

    async def told(line):
        one = json.loads(line)
        if "evaluations" in one and "candidate" in one:
            await ctx.report_progress(one["evaluations"], evaluations, one["candidate"])

    out = await run(["optimize", *start, "--policy", "uniform", "--pipeline", PIPELINE, "--evaluations", str(evaluations),
                     "--output", folder + "/out", "--progress", "jsonl"], told)
    evidence = json.loads(out.splitlines()[-1])
    return {"speedup_over_start": round(evidence["speedup"], 3), "suggestions": evidence["suggestions"],
            "thorough": evidence["thorough"], "modelled": evidence["modelled"], "evaluations": evidence["evaluations"],
            "source": pathlib.Path(folder, "out", "best.cu").read_text()}


@server.tool()
async def draft_problem(name: str, source: str, options: list[str] = []) -> dict[str, Any]:
    """Drafts a problem from an ordinary CUDA file with one kernel or launcher; later tools take it by `name`.

    `options`: what the source does not say, each as "NAME=VALUE": "size=n=1048576", "shape=x=rows,cols", "value=a=2.5",
    "function=softmax", "grid=cdiv(n,256)", "block=256", "output=y". An error names those that are missing. The reference's
    own results are what kernels are compared with (reference_only).
    """
    if not NAME.fullmatch(name):
        raise ToolError("a name has letters, digits, - and _ only")
    words = []
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or key not in ("function", "size", "multiple", "shape", "input", "output", "inout", "value", "range",
                                     "grid", "block", "shared", "allow"):
            raise ToolError("%r is not an option of draft_problem" % option)
        words += ["--" + key, value]
    folder = tempfile.mkdtemp(dir=scratch)
    pathlib.Path(folder, name + ".cu").write_text(source)
    out = await run(["problems", "new", folder + "/" + name + ".cu", "--reference-only", "--out", folder + "/" + name, *words])
    drafts[name] = folder + "/" + name
    return {"problem": name, "drafted": out.replace(folder + "/", ""),
            "files": {f.name: f.read_text() for f in sorted(pathlib.Path(drafts[name]).iterdir())}}


def start_service(arguments):
    """`serve` on a free port; its address. The service ends with this process."""
    process = subprocess.Popen([HOST, "serve", "--listen", "127.0.0.1:0", *arguments], cwd=scratch,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)
    for line in process.stdout:
        found = re.search(r" on (http://\S+)", line)
        if found:
            threading.Thread(target=process.stdout.read, daemon=True).start()  # so that its pipe never fills
            return process, found.group(1)
    raise SystemExit("kgrpo-host serve did not start: its message stands above")


def main():
    global address, device
    process = None
    try:
        address, device = words.server, words.device
        if not address:
            chosen = {"--evaluator": words.evaluator, "--devices": words.device}
            process, address = start_service([word for pair in chosen.items() if pair[1] for word in pair])
        server.run("stdio")
    finally:
        if process:
            process.terminate()
            process.wait()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
