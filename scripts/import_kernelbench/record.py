"""Records which operators of PyTorch a piece of code calls, with their arguments: the trace that kernels are generated
from (reference.py) and the tape that draws inputs and weights again (tape.py).
"""
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map


class Call:
    """One operator: its full name ("aten.mul.Tensor"), arguments and results, as the tensors themselves."""

    def __init__(self, function, args, kwargs, results):
        self.function, self.args, self.kwargs, self.results = function, args, kwargs, results
        self.name = str(function)

    @property
    def operator(self):
        """"mul" of "aten.mul.Tensor"."""
        return self.name.split(".")[1]


class View:
    """How a tensor lay in its memory when it was recorded; later in-place calls may not change that."""

    def __init__(self, tensor):
        self.shape, self.stride = tuple(tensor.shape), tuple(tensor.stride())
        self.offset, self.dtype = tensor.storage_offset(), tensor.dtype
        self.storage = tensor.untyped_storage()._cdata
        self.tensor = tensor  # keeps the storage alive, so that its address names it

    def numel(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count


class Recorder(TorchDispatchMode):
    """with Recorder() as recorder: ...; recorder.calls lists what was called."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        results = function(*args, **kwargs)
        self.calls.append(Call(function, tree_map(_seen, args), tree_map(_seen, kwargs), tree_map(_seen, results)))
        return results


def _seen(leaf):
    return View(leaf) if isinstance(leaf, torch.Tensor) else leaf


def views(tree):
    """All View leaves of arguments or results."""
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, View)]
