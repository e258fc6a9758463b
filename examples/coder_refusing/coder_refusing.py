#!/usr/bin/env python3
"""A coder that refuses a share of its requests and has coder_offline_apply answer the others: what does a run make of
a service that declines? Needs kgrpo_plugin.py beside it, or its folder in PYTHONPATH.

    kgrpo-host plugins validate coder_program --options examples/coder_refusing/options.json
    kgrpo-host configs/quickstart_refusals.yaml

What is refused depends on the request alone: the same kernel and suggestion are refused in every run.
"""
import hashlib
import subprocess

from kgrpo_plugin import NotApplicable, Refused, Unclear, coder, run

APPLY = "build/bin/coder_offline_apply"


def is_refused(code, suggestion, share):
    digest = hashlib.sha256((code + "\0" + suggestion).encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def suggestions():
    return subprocess.run([APPLY, "--suggestions"], check=True, capture_output=True, text=True).stdout.splitlines()


def write(request, *, share=0.1):
    """The kernel request.code_b, changed as request.suggestion says; `share` of the requests are refused."""
    if is_refused(request.code_b, request.suggestion, share):
        raise Refused("this request is among those that are refused")
    if request.suggestion.startswith("--"):  # the tool would read an option
        raise Unclear("no technique is named")
    done = subprocess.run([APPLY, "/dev/stdin", request.suggestion], input=request.code_b, capture_output=True, text=True)
    said = done.stderr.strip().removeprefix(request.suggestion + ": ")
    if done.returncode == 0:
        return {"source": done.stdout, "summary": said}
    if done.returncode == 1:
        raise (Unclear if "names no technique" in said else NotApplicable)(said)
    raise RuntimeError("coder_offline_apply: " + said)


if __name__ == "__main__":
    coder(write, concurrency=2, suggestions=suggestions())
    run()
