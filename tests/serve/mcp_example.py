"""Drives `kgrpo-host mcp` by the protocol's own client (the package mcp): every tool, errors, progress, cancellation, and
two agents at once. Ends with 77 (skipped) if the package is missing.

usage: mcp_example.py KGRPO_HOST
"""
import asyncio
import json
import os
import pathlib
import sys
import time

try:
    from mcp import StdioServerParameters, stdio_client
    from mcp.client.client import Client
except ImportError as error:
    print(f"skipped: {sys.executable} has no package mcp ({error})")
    sys.exit(77)

HOST = os.path.abspath(sys.argv[1])
PROBLEM = pathlib.Path(__file__).resolve().parents[2] / "problems/saxpy_strided"
SCALE = "__global__ void scale(const float* x, float* y, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n" \
    "  if (i < n) y[i] = 2 * x[i];\n}\n"
LAUNCH = SCALE + "void launch(const float* x, float* y, int n) { scale<<<(n + 255) / 256, 256>>>(x, y, n); }\n"


def content(result):
    """What a tool returned, as Python values; a failure's text."""
    if result.is_error:
        return result.content[0].text
    value = result.structured_content
    return value["result"] if set(value) == {"result"} else value


async def session(use):
    server = StdioServerParameters(command=HOST, args=["mcp"], env=dict(os.environ, KGRPO_PYTHON=sys.executable))
    async with Client(stdio_client(server)) as client:
        await use(client)


async def agent(client):
    async def call(tool, **arguments):
        return content(await client.call_tool(tool, arguments))

    tools = {tool.name for tool in (await client.list_tools()).tools}
    assert tools == {"list_problems", "evaluate", "explain", "compare", "optimise", "draft_problem"}, tools
    problems = await call("list_problems", contains="softmax")
    assert any("void launch(" in one["signature"] and one["title"] and "rows=" in one["task"] for one in problems), problems

    drafted = await call("draft_problem", name="scaled", source=SCALE, options=["size=n=1048576"])
    assert drafted["problem"] == "scaled" and "reference.cu" in drafted["files"], drafted
    good = await call("evaluate", problem="scaled", source=LAUNCH)
    assert good["verdict"] == "correct" and good["speedup"] > 0.5 and good["modelled"], good
    wrong = await call("evaluate", problem="scaled", source=LAUNCH.replace("2 * x", "3 * x"), thorough=True)
    assert wrong["verdict"] == "wrong" and not wrong["correct"] and "speedup" not in wrong, wrong
    ranked = await call("compare", problem="scaled", sources=["not a kernel", LAUNCH])
    assert [one["index"] for one in ranked] == [1, 0] and ranked[1]["verdict"] == "not_compiled", ranked
    explained = await call("explain", problem="scaled")
    assert explained["metrics"] and "scale" in explained["source"], explained

    # An agent's words open no file and name no option beyond those of a draft.
    for arguments in ({"problem": "/etc", "source": ""}, {"problem": "../scaled", "source": ""}):
        assert "no problem's name" in await call("evaluate", **arguments)
    assert "there is no problem" in await call("evaluate", problem="none", source="")
    assert "not an option" in await call("draft_problem", name="x", source=SCALE, options=["include=/etc"])
    assert "--size" in await call("draft_problem", name="y", source=SCALE.replace("int n", "int rows, int n"))

    told = []

    async def progress(done, total, message):
        told.append((done, total, message))

    best = content(await client.call_tool("optimise", {"problem": "scaled", "source": LAUNCH, "evaluations": 6},
                                          progress_callback=progress))
    assert best["speedup_over_start"] >= 1 and "launch" in best["source"] and best["evaluations"] <= 6, best
    assert told and told[-1][1] == 6 and all(message for _, _, message in told), told

    begin = time.monotonic()
    search = asyncio.ensure_future(client.call_tool("optimise", {"problem": "scaled", "evaluations": 100000}))
    await asyncio.sleep(2)
    search.cancel()
    assert (await call("evaluate", problem="scaled", source=LAUNCH))["correct"]
    assert time.monotonic() - begin < 60


async def main():
    await asyncio.gather(session(agent), session(agent))
    print("passed")


asyncio.run(main())
