"""Traces a PyTorch function to a problem's oracle: `kgrpo-host problems new KERNEL.cu --torch FILE.py[:FUNCTION]` runs this.

    trace_function.py FILE.py FUNCTION ENTRY OUT x:input:float32 y:output:float32 @visible_0 x=5,7 y=5,7 eps=1e-5 n=7 ...

Writes OUT/SIZE.pt, a module a size, which takes the inputs and inouts in order and returns every written tensor.
Whatever precision the function asks for, it computes in float64.
"""
import importlib.util
import inspect
import os
import sys

FLOATS = ("float16", "bfloat16", "float32")


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(3)


try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.overrides import TorchFunctionMode
except ImportError as error:
    fail(f"{sys.executable} cannot load PyTorch ({error}): name a Python that has it by --python PATH or KGRPO_PYTHON")


class InFloat64(TorchFunctionMode):
    """Replaces the narrower floating types that calls name."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16):
            return args[0].double()
        narrow = {getattr(torch, name) for name in FLOATS}
        wide = [torch.float64 if isinstance(item, torch.dtype) and item in narrow else item for item in args]
        kwargs = {name: torch.float64 if isinstance(value, torch.dtype) and value in narrow else value
                  for name, value in (kwargs or {}).items()}
        return function(*wide, **kwargs)


def load(file, name, entry):
    """The function: the one named, the only one, the kernel's namesake, or `reference`."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec = importlib.util.spec_from_file_location("reference", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {key: value for key, value in vars(module).items()
             if inspect.isfunction(value) and value.__module__ == "reference" and not key.startswith("_")}
    for wanted in [name] if name else [entry, "reference"]:
        if wanted in found:
            return found[wanted]
    if name or len(found) != 1:
        fail(f"{file}: choose one of its functions by --torch {file}:NAME ({', '.join(found) or 'it has none'})")
    return next(iter(found.values()))


def binding(function, inputs, numbers):
    """Names of the problem's tensors and numbers, one a parameter of the function."""
    names = []
    parameters = inspect.signature(function).parameters.values()
    known = any(p.name in inputs for p in parameters)
    rest = list(inputs)  # by position, where no name of a tensor is the problem's
    for p in parameters:
        if p.name in inputs or p.name in numbers:
            names.append((p.name, p.name))
        elif not known and rest:
            names.append((p.name, rest.pop(0)))
        elif p.default is inspect.Parameter.empty:
            fail(f"the parameter {p.name} of {function.__name__} is none of the problem's: "
                 f"{', '.join(list(inputs) + list(numbers))}")
    return names


def tensor_of(dtype, shape, seed):
    generator = torch.Generator().manual_seed(seed)
    if dtype in FLOATS + ("float64",):
        return torch.randn(shape, generator=generator, dtype=torch.float64)
    return torch.randint(0, 2, shape, generator=generator).to(getattr(torch, dtype))


def trace(function, kinds, sizes, file):
    inputs = [name for name, (role, _) in kinds.items() if role in ("input", "inout")]
    written = [name for name, (role, _) in kinds.items() if role in ("output", "inout")]
    numbers = {name: value for name, value in sizes.items() if not isinstance(value, tuple)}
    names = binding(function, inputs, numbers)

    def forward(*tensors):
        values = {**numbers, **dict(zip(inputs, tensors))}
        out = function(**{parameter: values[name] for parameter, name in names})
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        return tuple(torch.view_as_real(one) if one.is_complex() else one for one in out)

    def draw(seed):
        return tuple(tensor_of(kinds[name][1], sizes[name], seed + i) for i, name in enumerate(inputs))

    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False), InFloat64():
        out = forward(*draw(1))
        if len(out) != len(written):
            fail(f"{function.__name__} returns {len(out)} tensors, and the kernel writes {len(written)}: {', '.join(written)}")
        for name, one in zip(written, out):
            wanted = torch.Size(sizes[name])
            if one.numel() != wanted.numel():
                fail(f"{function.__name__} returns {name} as {list(one.shape)}, and the problem has {list(wanted)} ({numbers})")
        traced = torch.jit.trace(forward, draw(1), check_trace=False)
        other = draw(1000)
        for name, got, wanted in zip(written, traced(*other), forward(*other)):
            if not torch.allclose(got, wanted, equal_nan=True):
                fail(f"{function.__name__}: {name} depends on values in a way that a trace does not keep (an `if` on a tensor)")
    traced.save(file)


def main():
    file, name, entry, out, *words = sys.argv[1:]
    torch.set_default_dtype(torch.float64)
    function = load(file, name, entry)
    kinds, sizes = {}, {}
    for word in words:
        if word.startswith("@"):
            sizes[word[1:]] = {}
        elif "=" in word:
            key, value = word.split("=")
            last = list(sizes.values())[-1]
            last[key] = tuple(map(int, value.split(","))) if key in kinds else float(value) if "." in value or "e" in value else int(value)
        else:
            key, role, dtype = word.split(":")
            kinds[key] = (role, dtype)
    os.makedirs(out, exist_ok=True)
    for size, values in sizes.items():
        trace(function, kinds, values, os.path.join(out, size + ".pt"))
    print(function.__name__)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        fail(f"{type(error).__name__}: {error}")
