"""Whether an output that ignores its inputs passes KernelBench's comparison: what a problem is flagged for.

Small outputs are no guide: a softmax over 7 elements is far from zero, one over 393,216 is not. So sizes near KernelBench's
own are looked at too, where that is affordable: with a small batch, and where that is too much, with one more dimension
small. Used by one_problem.py.
"""
import time

import torch

from traced import Traced

TOLERANCES = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 1e-2}  # KernelBench's, both absolute and relative
COST = 4e9  # limit for one run, as sizes.Outcome counts it: a second or two
SECONDS = 15.0  # limit for all runs of a problem
ZEROS, CONSTANT = "zeros pass KernelBench's tolerance", "a constant passes KernelBench's tolerance"


def trivial(output, tolerance):
    """The flags of one output, as KernelBench compares: |got - expected| <= tolerance * (1 + |expected|)."""
    expected = output.double().flatten()
    room = tolerance * (1 + expected.abs())
    flags = []
    if expected.numel() > 1 and float((expected - room).max()) <= float((expected + room).min()):
        flags.append(CONSTANT)
    if bool((expected.abs() <= room).all()):
        flags.append(ZEROS)
    return flags


def _near_sizes(source, shrinker, small):
    """KernelBench's own size, or the sizes near it that cost little."""
    if shrinker.device != "meta":
        return []
    original = source.original()
    shrinkable = [slot.name for slot in source.slots if small[slot.name] < slot.value]
    batch = [name for name in shrinkable if "batch" in name.lower()] or shrinkable[:1]
    few = {**original, **{name: small[name] for name in batch}}
    one_more = [{**few, name: small[name]} for name in shrinkable if name not in batch]
    for sizes in ([original], [few], one_more):
        affordable = []
        for values in sizes:
            outcome = shrinker.original if values == original else shrinker.works(values)
            if outcome is not None and outcome.cost <= COST:
                affordable.append(values)
        if affordable:
            return affordable
    return []


def flags_of(source, shrinker, small, outputs, precision):
    """The flags of a problem. `outputs`: those already computed; `small`: the smallest of their sizes."""
    tolerance, until = TOLERANCES[precision], time.time() + SECONDS
    found = set(trivial(max(outputs, key=lambda tensor: tensor.numel()), tolerance))
    near = []
    for values in _near_sizes(source, shrinker, small):
        if time.time() > until:
            break
        try:
            with torch.no_grad():
                output = Traced(source, values).run()
            if output.is_floating_point() and bool(torch.isfinite(output).all()):
                near.append(set(trivial(output, tolerance)))
        except Exception:  # this size does not work: too little memory, or the problem's own code refuses it
            continue
    # A small dimension may make a problem trivial at one size, as a group of one channel does. A flag needs all sizes.
    if near:
        found |= set.intersection(*near)
    return [flag for flag in (CONSTANT, ZEROS) if flag in found]
