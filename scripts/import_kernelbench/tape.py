"""How weights and inputs come to be: recorded calls of PyTorch's random numbers and fills.

A tensor that one call fills ("uniform_", "rand", "fill_") is a distribution of problem.yaml. All others, and the exact
bits that PyTorch draws from a seed, are a tape: the recorded calls as a TorchScript function, which libtorch replays
after at::manual_seed. Used by one_problem.py.
"""
import math

import torch

from record import View, views

# Calls whose result holds its input's values in the same order.
_SAME_VALUES = {"detach", "alias", "view", "_unsafe_view", "lift_fresh", "clone", "_to_copy", "unsqueeze", "squeeze",
                "expand", "set_", "requires_grad_", "_reshape_alias", "contiguous"}
_EMPTY = {"empty", "empty_like", "new_empty", "empty_strided"}


def _argument(call, position, name, default=None):
    return call.args[position] if len(call.args) > position else call.kwargs.get(name, default)


def _drawn_by(call):
    """What a call that fills a whole tensor draws: (kind, settings...), or None."""
    op = call.operator
    if op in ("rand", "rand_like"):
        return ("uniform", 0.0, 1.0)
    if op in ("randn", "randn_like"):
        return ("normal", 0.0, 1.0)
    if op in ("zeros", "zeros_like", "zero_", "new_zeros"):
        return ("constant", 0.0)
    if op in ("ones", "ones_like", "new_ones"):
        return ("constant", 1.0)
    if op in ("full", "full_like", "fill_"):
        value = call.args[1]
        return ("constant", float(value)) if isinstance(value, (int, float, bool)) else None
    if op == "uniform_":
        return ("uniform", float(_argument(call, 1, "from", 0.0)), float(_argument(call, 2, "to", 1.0)))
    if op == "normal_":
        return ("normal", float(_argument(call, 1, "mean", 0.0)), float(_argument(call, 2, "std", 1.0)))
    if op == "randint":
        low, high = (0, call.args[0]) if isinstance(call.args[1], (list, tuple)) else call.args[:2]
        return ("integers", int(low), int(high) - 1)
    return None


def distributions(calls, tensors):
    """Of each tensor (kind, settings...), or None where only a tape gives its values."""
    filled = {}  # storage -> the distribution of its last whole fill; None: computed
    for call in calls:
        results = views(call.results)
        if not results:
            continue
        drawn = _drawn_by(call)
        target = results[0]
        whole = target.tensor.untyped_storage().nbytes() == target.numel() * target.tensor.element_size()
        if drawn is not None:
            filled[target.storage] = drawn if whole else None
        elif call.operator in _EMPTY:
            filled[target.storage] = None
        elif call.operator in _SAME_VALUES and views(call.args):
            source = views(call.args)[0]
            # A cast or repeated rows change the distribution.
            same = source.numel() == target.numel() and source.dtype == target.dtype
            filled[target.storage] = filled.get(source.storage) if same else None
        else:
            for result in results:
                filled[result.storage] = None
    return [filled.get(tensor.untyped_storage()._cdata) for tensor in tensors]


def _key(view):
    return (view.storage, view.offset, view.shape, view.stride, view.dtype)


def _text(value, names):
    if isinstance(value, View):
        if _key(value) not in names and value.shape == ():  # torch.tensor(0) bypasses the dispatcher
            return f"torch.tensor({value.tensor.item()!r}, dtype={value.dtype})"
        return names[_key(value)]
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_text(item, names) for item in value) + "]"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if isinstance(value, torch.device):
        return 'torch.device("cpu")'
    if isinstance(value, str):
        return repr(value)
    return str(value)  # numbers, None, torch.float32, torch.strided, torch.contiguous_format


def script(calls, tensors):
    """The tape that makes `tensors` again, as a torch.jit.ScriptFunction without arguments that returns a list of them.

    Raises KeyError where a call works on a tensor that no recorded call made, RuntimeError where TorchScript has no
    such call.
    """
    names, lines = {}, []
    for call in calls:
        if not views(call.results):
            continue
        arguments = [_text(argument, names) for argument in call.args]
        arguments += [f"{name}={_text(value, names)}" for name, value in call.kwargs.items() if value is not None]
        results = views(call.results)
        made = [f"v{len(lines)}_{i}" for i in range(len(results))]
        lines.append(f"  {', '.join(made)} = torch.ops.aten.{call.operator}({', '.join(arguments)})")
        for name, view in zip(made, results):
            names[_key(view)] = name
    wanted = [names[_key(View(tensor))] for tensor in tensors]
    source = "def tape():\n" + "\n".join(lines) + f"\n  return [{', '.join(wanted)}]\n"
    unit = torch.jit.CompilationUnit(source)
    return unit.tape
