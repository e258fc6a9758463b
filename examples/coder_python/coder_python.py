#!/usr/bin/env python3
"""A coder in Python: carries out "launch bounds". Needs kgrpo_plugin.py beside it.

In this folder:

    kgrpo-host plugins validate coder_program --options options.json

In the folder that the pipeline's paths start from, with this folder in it:

    kgrpo-host pipeline.yaml --set coder.plugin=coder_program --set 'coder.options={command: [python3, coder_python/coder_python.py]}'

A coder that asks a service belongs here too: give @coder a concurrency, and it is called from that many threads at once.
"""
from kgrpo_plugin import NotApplicable, Unclear, coder, run


@coder(suggestions=["launch bounds"])
def write(request, *, threads=1024):
    """The kernel request.code_b, changed as request.suggestion says. Its blocks have at most `threads` threads."""
    if "launch bounds" not in request.suggestion:
        raise Unclear("this coder knows one thing: launch bounds")
    if "__launch_bounds__" in request.code_b:
        raise NotApplicable("the kernel has launch bounds")
    bounds = "__launch_bounds__(%d)" % threads
    return {"source": request.code_b.replace("__global__ void ", "__global__ void %s " % bounds), "summary": bounds}


if __name__ == "__main__":
    run()
