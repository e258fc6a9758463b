"""Records what a Triton candidate launches, as PTX with a launch table (plugins/interpreter/launch_table.h).

    record_triton.py REQUEST     run by judge/compile/triton_recorder.cc in the sandbox, with the user's Python and Triton

The candidate is a Python file with `launch(...)`, which takes the problem's parameters in order. It is called once for each
size, with stand-ins for tensors that know dtype, shape and strides, and no values. Triton compiles as on a GPU, for
sm_89 and without fusing multiplications into additions; a driver of ours records each launch. There is no device, and
PyTorch is a module of stand-ins too: its arithmetic is refused by name.

REQUEST is a file of JSON: {"source": FILE, "device": {"name", "multiprocessors", "shared_bytes"}, "parameters": [{"name", "dtype",
"tensor": bool}], "calls": [{"at": {NAME: integer}, "shapes": [...], "values": [...]}]}, where `shapes` are [extents, strides] of each
tensor and `values` the scalars, else null. The result goes to descriptor 3. What the candidate does wrong is a line on standard
error and the exit code 3 (`unsupported`), 4 (its own fault) or 5 (no launch).
"""
import importlib.util
import inspect
import json
import math
import operator
import os
import re
import sys
import traceback
import types

SM = 89  # wgmma and tensor maps of later ones are not interpreted
UNSUPPORTED, WRONG, NO_LAUNCH = 3, 4, 5
OUT = 3  # the descriptor
SUPPORTED = ((3, 4), (3, 9))  # Triton's versions, whose private interfaces this file uses


class Unsupported(Exception):
    pass


class NoLaunch(Exception):
    pass


class OwnFault(Exception):
    """A fault of the candidate's that no line of it has."""


def refuse(what):
    raise Unsupported(f"{what} is not available: the launch function may compute with sizes and launch kernels only; write the rest as a kernel")


class Dtype:
    def __init__(self, name, bytes_):
        self.name, self.itemsize = name, bytes_
        self.is_floating_point = "float" in name

    def __repr__(self):
        return "torch." + self.name


DTYPES = {name: Dtype(name, bytes_) for name, bytes_ in (
    ("float64", 8), ("float32", 4), ("float16", 2), ("bfloat16", 2), ("int64", 8), ("int32", 4), ("int16", 2), ("int8", 1),
    ("uint8", 1), ("uint16", 2), ("uint32", 4), ("uint64", 8), ("bool", 1), ("float8_e4m3fn", 1), ("float8_e5m2", 1))}


class Named(float):
    """A floating scalar of the problem: its name stands in the table while nothing was computed from it."""


class Tensor:
    """A view of a parameter: dtype, shape, strides, and an offset in elements."""

    def __init__(self, name, dtype, shape, strides, offset=0):
        self.name, self.dtype, self.shape, self._strides, self.offset = name, dtype, tuple(shape), tuple(strides), offset

    def data_ptr(self):  # tensors begin at multiples of 256 bytes
        return 4096 + self.offset * self.dtype.itemsize

    device = types.SimpleNamespace(type="cuda", index=0)
    is_cuda = True
    requires_grad = False

    ndim = property(lambda self: len(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    T = property(lambda self: self.transpose(0, 1))

    def dim(self):
        return len(self.shape)

    def numel(self):
        return math.prod(self.shape)

    def element_size(self):
        return self.dtype.itemsize

    def storage_offset(self):
        return self.offset

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim=None):
        return self._strides if dim is None else self._strides[dim]

    def __len__(self):
        return self.shape[0]

    def is_contiguous(self):
        return all(extent == 1 or stride == wanted for extent, stride, wanted in zip(self.shape, self._strides, compact(self.shape)))

    def contiguous(self):
        return self if self.is_contiguous() else refuse("contiguous() of a tensor with strides")

    def detach(self):
        return self

    def _view(self, shape, strides, offset=None):
        return Tensor(self.name, self.dtype, shape, strides, self.offset if offset is None else offset)

    def transpose(self, a, b):
        shape, strides = list(self.shape), list(self._strides)
        shape[a], shape[b], strides[a], strides[b] = shape[b], shape[a], strides[b], strides[a]
        return self._view(shape, strides)

    def t(self):
        return self.transpose(0, 1)

    def permute(self, *dims):
        dims = dims[0] if isinstance(dims[0], (tuple, list)) else dims
        return self._view([self.shape[d] for d in dims], [self._strides[d] for d in dims])

    def unsqueeze(self, dim):
        dim %= len(self.shape) + 1
        stride = self.shape[dim] * self._strides[dim] if dim < len(self.shape) else 1
        return self._view(self.shape[:dim] + (1,) + self.shape[dim:], self._strides[:dim] + (stride,) + self._strides[dim:])

    def squeeze(self, dim=None):
        if dim is None:
            refuse("squeeze() without a dimension")
        if self.shape[dim] != 1:
            return self
        dim %= len(self.shape)
        return self._view(self.shape[:dim] + self.shape[dim + 1:], self._strides[:dim] + self._strides[dim + 1:])

    def view(self, *shape):
        shape = list(shape[0] if isinstance(shape[0], (tuple, list)) else shape)
        if not all(isinstance(extent, int) for extent in shape):
            refuse("view() as another dtype")
        if not self.is_contiguous():
            refuse("view() of a tensor with strides")
        if -1 in shape:
            at = shape.index(-1)
            shape[at] = self.numel() // max(1, math.prod(shape[:at] + shape[at + 1:]))
        if math.prod(shape) != self.numel():
            raise RuntimeError(f"shape {shape} is invalid for a tensor of {self.numel()} elements")
        return self._view(shape, compact(shape))

    reshape = view

    def flatten(self):
        return self.view(-1)

    def expand(self, *shape):
        shape = list(shape[0] if isinstance(shape[0], (tuple, list)) else shape)
        new = len(shape) - self.ndim
        if new < 0:
            raise RuntimeError(f"expand: {len(shape)} dimensions are fewer than {self.ndim}")
        strides = [0] * new
        for dim, (extent, stride) in enumerate(zip(self.shape, self._strides), new):
            shape[dim] = extent if shape[dim] == -1 else shape[dim]
            if extent not in (1, shape[dim]):
                raise RuntimeError(f"expand: extent {extent} of dimension {dim - new} cannot become {shape[dim]}")
            strides.append(stride if extent == shape[dim] else 0)
        return self._view(shape, strides)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        named = sum(one is not None and one is not Ellipsis for one in index)
        if named > self.ndim:
            raise IndexError(f"too many indices for a tensor of {self.ndim} dimensions")
        if not any(one is Ellipsis for one in index):
            index += (Ellipsis,)
        at = next(i for i, one in enumerate(index) if one is Ellipsis)
        index = index[:at] + (slice(None),) * (self.ndim - named) + index[at + 1:]
        shape, strides, offset, dim = [], [], self.offset, 0
        for one in index:
            if one is None:
                shape.append(1)
                strides.append(self.shape[dim] * self._strides[dim] if dim < self.ndim else 1)
                continue
            if isinstance(one, slice):
                begin, end, step = one.indices(self.shape[dim])
                if step < 1:
                    raise ValueError("step must be greater than zero")
                offset += begin * self._strides[dim]
                shape.append(max(0, -(-(end - begin) // step)))
                strides.append(self._strides[dim] * step)
            elif isinstance(one, int) and not isinstance(one, bool):
                if not -self.shape[dim] <= one < self.shape[dim]:
                    raise IndexError(f"index {one} is out of bounds for dimension {dim} with size {self.shape[dim]}")
                offset += (one % self.shape[dim]) * self._strides[dim]
            else:
                refuse("indexing a tensor by values")
            dim += 1
        return self._view(shape, strides, offset)

    __hash__ = object.__hash__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"torch.Tensor.{name}")


for _operator in ("add sub mul truediv floordiv matmul pow mod and or xor lshift rshift lt le gt ge eq ne radd rsub rmul rtruediv rfloordiv "
                  "rmatmul rpow rmod rand ror rxor iadd isub imul itruediv neg pos abs invert bool float int index iter setitem contains").split():
    setattr(Tensor, f"__{_operator}__", lambda self, *_, _operator=_operator: refuse(f"tensor arithmetic (__{_operator}__)"))


def compact(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Torch(types.ModuleType):
    """The module `torch` as a candidate sees it."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"{self.__name__}.{name}")


def torch_module(device):
    torch = Torch("torch")
    torch.__dict__.update(DTYPES, Tensor=Tensor, dtype=Dtype, half=DTYPES["float16"], float=DTYPES["float32"], double=DTYPES["float64"],
                          long=DTYPES["int64"], int=DTYPES["int32"], __version__="0", __path__=[])
    index = lambda *_: 0
    properties = types.SimpleNamespace(multi_processor_count=device["multiprocessors"], major=SM // 10, minor=SM % 10, total_memory=80 << 30,
                                       warp_size=32, name=device["name"], shared_memory_per_block_optin=device["shared_bytes"])
    torch.cuda = Torch("torch.cuda")
    torch.cuda.__dict__.update(current_device=index, is_available=lambda: True, get_device_properties=lambda *_: properties,
                               get_device_capability=lambda *_: (SM // 10, SM % 10), current_stream=lambda *_: types.SimpleNamespace(cuda_stream=0),
                               device=lambda *_: Guard(), device_of=lambda *_: Guard(), synchronize=lambda *_: None)
    torch.nn = Torch("torch.nn")
    torch.nn.functional = Torch("torch.nn.functional")
    torch.no_grad = torch.inference_mode = Guard
    torch.is_tensor = lambda value: isinstance(value, Tensor)
    torch.version = types.SimpleNamespace(cuda="13.0", hip=None)
    for module in (torch, torch.cuda, torch.nn, torch.nn.functional):
        sys.modules[module.__name__] = module
    return torch


class Guard:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __call__(self, function):
        return function


class Recorder:
    """Triton's driver: compiles for SM, and keeps each launch in place of making it."""

    def __init__(self, device):
        self.launches = []  # (source, metadata, grid, arguments) of each, in the call that is recorded
        self.launcher_cls = self.launcher
        self.utils = types.SimpleNamespace(
            load_binary=lambda *_: (0, 0, 0, 0, 1024),
            get_device_properties=lambda *_: {"max_shared_mem": device["shared_bytes"], "max_num_regs": 65536, "warpSize": 32,
                                              "multiprocessor_count": device["multiprocessors"],
                                              "sm_clock_rate": 1755000, "mem_clock_rate": 2619000, "mem_bus_width": 5120})

    def launcher(self, src, metadata):
        def launch(grid_x, grid_y, grid_z, stream, function, packed, launch_metadata, enter, leave, *arguments):
            grid = [operator.index(extent) for extent in (grid_x, grid_y, grid_z)]  # TypeError for 1.5, as Triton's own launcher
            if min(grid) < 0:
                raise ValueError(f"a grid of {grid} blocks")
            if min(grid) > 0:  # else it launches nothing on a GPU either
                self.launches.append((src, metadata, grid, arguments))
        return launch

    is_active = staticmethod(lambda: True)
    get_current_device = staticmethod(lambda: 0)
    set_current_device = staticmethod(lambda device: None)
    get_current_stream = staticmethod(lambda device=0: 0)
    get_device_capability = staticmethod(lambda device=0: (SM // 10, SM % 10))
    get_active_torch_device = staticmethod(lambda: Tensor.device)
    map_python_to_cpp_type = staticmethod(lambda kind: kind)
    get_device_interface = staticmethod(lambda: sys.modules["torch"].cuda)
    get_empty_cache_for_benchmark = staticmethod(lambda: None)
    clear_cache = staticmethod(lambda cache: None)

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget
        return GPUTarget("cuda", SM, 32)

    def get_benchmarker(self):  # of autotuned kernels the first configuration counts: none is measured
        return lambda *_, **__: [0.0, 0.0, 0.0]


def prepare_triton(device):
    try:
        import triton
    except ImportError as error:
        raise Unsupported(f"{error} in {sys.executable}: name a Python that has it by the option `python` (pip install triton)")
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    if not SUPPORTED[0] <= version <= SUPPORTED[1]:
        raise Unsupported(f"Triton {triton.__version__}: versions {'.'.join(map(str, SUPPORTED[0]))} to {'.'.join(map(str, SUPPORTED[1]))} are supported")
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner
    recorder = Recorder(device)
    driver.set_active(recorder)
    ptx_of = {}

    def keep_ptx(self, src, metadata, *_):  # the machine code is made later, by this evaluator's ptxas
        ptx_of[metadata["hash"]] = src if isinstance(src, str) else src.decode()
        return b"none"

    CUDABackend.make_cubin = keep_ptx
    parse = CUDABackend.parse_options

    def without_fusion(self, options):
        return parse(self, dict(options, enable_fp_fusion=False))

    CUDABackend.parse_options = without_fusion
    Autotuner._bench = lambda self, *_, **__: [0.0, 0.0, 0.0]
    return recorder, ptx_of


class Modules:
    """The PTX of all kernels as one file: a name that several of them define gets the kernel's number."""

    def __init__(self, source):
        self.source, self.entries, self.used = source, {}, set()
        self.bodies, self.files, self.strings, self.externals = [], [], [], []

    def entry(self, key, name, ptx):
        if key not in self.entries:
            number = len(self.entries)
            own_name, tries = name, number
            while own_name in self.used:
                own_name, tries = f"{name}_{tries}", tries + 1
            self.used.add(own_name)
            self.entries[key] = own_name
            # Variables and functions of the module; not the dynamic shared memory and what the system defines.
            own = re.findall(r"^(?:\.(?:visible|weak)\s+)*\.(?:global|const|func)\b[^;{=]*?([A-Za-z_$][\w$]*)\s*(?:\[|\(|=|;)", ptx, re.M)
            own += re.findall(r"^(\$L__info_string\d+):", ptx, re.M)
            # A name without _ or $ might be an instruction's.
            self.add(ptx.replace(f".entry {name}(", f".entry {own_name}("),
                     {one: f"{one}$of{number}" for one in own if "_" in one or "$" in one})
        return self.entries[key]

    def add(self, ptx, names):
        def renamed(line):
            return re.sub(r"(?<![\w$.%@])[A-Za-z_$][\w$]*", lambda word: names.get(word[0], word[0]), line)

        first, text, lines = len(self.files), [], iter(ptx.splitlines())
        for line in lines:
            stripped = line.strip()
            if not stripped or stripped.startswith((".version", ".target", ".address_size", "//")):
                continue
            if stripped.startswith(".extern"):
                while not line.rstrip().endswith(";"):
                    line += "\n" + next(lines)
                self.externals += [line] if line not in self.externals else []
            elif match := re.match(r"\s*\.file\s+\d+\s+(.*)", line):
                parts = re.findall(r'"([^"]*)"', match[1])
                self.files.append('"kernel.py"' if os.path.join(*parts) == self.source else match[1])
            elif stripped.startswith(".section"):  # only the names of inlined functions are used
                kept = ".debug_str" in stripped
                for line in lines:
                    if line.strip() == "}":
                        break
                    if kept and line.strip() != "{":
                        self.strings.append(renamed(line))
            else:
                line = re.sub(r"(\.loc\s+|inlined_at\s+)(\d+)", lambda place: place[1] + str(int(place[2]) + first), line)
                text.append(renamed(line))
        self.bodies.append("\n".join(text))

    def text(self, version):
        parts = [f".version {version}\n.target sm_{SM}\n.address_size 64"] + self.externals + self.bodies
        parts += [f"\t.file\t{number} {name}" for number, name in enumerate(self.files, 1)]
        if self.strings:
            parts.append("\t.section\t.debug_str\n\t{\n" + "\n".join(self.strings) + "\n\t}")
        return "\n".join(parts) + "\n"


def passed_arguments(values, kinds):
    """(value, kind) of each that the kernel has as a parameter; those of a tuple one by one."""
    for value, kind in zip(values, kinds):
        if isinstance(kind, (tuple, list)):
            yield from passed_arguments(value, kind)
        elif kind != "constexpr":
            yield value, kind


def argument_text(value):
    if isinstance(value, Tensor):
        return value.name + (f" + {value.offset * value.dtype.itemsize}" if value.offset else "")
    if value is None:
        return "0"
    if isinstance(value, Named):
        return value.name
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Unsupported(f"the argument {value} of a kernel")
        return "%.17g" % value
    raise Unsupported(f"an argument of the type {type(value).__name__} of a kernel")


def table_line(launch, at, modules, ptx_of):
    src, metadata, grid, arguments = launch
    passed = list(passed_arguments(arguments, src.signature.values()))
    if any("tensordesc" in str(kind) for _, kind in passed):
        raise Unsupported("a tensor descriptor as an argument of a kernel")
    if metadata.global_scratch_size:
        raise Unsupported("memory that Triton takes beside the tensors (global_scratch)")
    if metadata.num_ctas != 1:
        raise Unsupported("num_ctas above 1")
    passed = [argument_text(value) for value, _ in passed] + ["0", "0"]  # two pointers to memory that Triton would take
    ptx = ptx_of[metadata.hash]
    entry = modules.entry(metadata.hash, metadata.name, ptx)
    parameters = re.search(r"\.visible \.entry \w+\(([^)]*)\)", ptx)[1].count(".param ")
    passed = passed[:parameters]
    line = (f"// kgrpo launch: entry={entry} grid=({', '.join(map(str, grid))}) block=({32 * metadata.num_warps}) "
            f"shared={metadata.shared} args=({', '.join(passed)}) at=({', '.join(f'{name}={value}' for name, value in at.items())})")
    return line + (" cooperative=1" if metadata.launch_cooperative_grid else "") + (" overlaps=1" if metadata.launch_pdl else "")


def load(path, names):
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "launch", None)):
        raise OwnFault(f"the file defines no function launch({', '.join(names)})")
    try:
        inspect.signature(module.launch).bind(*names)
    except TypeError as error:
        raise OwnFault(f"the problem calls launch({', '.join(names)}), and the file defines launch{inspect.signature(module.launch)}") from error
    return module.launch


def record(request):
    torch_module(request["device"])
    recorder, ptx_of = prepare_triton(request["device"])
    launch = load(request["source"], [parameter["name"] for parameter in request["parameters"]])
    modules, lines = Modules(request["source"]), {}
    for call in request["calls"]:
        arguments = []
        for parameter, shape, value in zip(request["parameters"], call["shapes"], call["values"]):
            if parameter["tensor"]:
                arguments.append(Tensor(parameter["name"], DTYPES[parameter["dtype"]], shape[0], shape[1]))
            elif "float" in parameter["dtype"]:
                if parameter["dtype"] != "float32" or value is None:  # Triton passes each Python float as one
                    raise Unsupported(f"the scalar {parameter['name']}, which is not a finite float32")
                arguments.append(Named(value))
                arguments[-1].name = parameter["name"]
            else:
                arguments.append(bool(value) if parameter["dtype"] == "bool" else int(value))
        recorder.launches = []
        launch(*arguments)
        table = [table_line(one, call["at"], modules, ptx_of) for one in recorder.launches]
        if lines.setdefault(json.dumps(call["at"]), table) != table:
            raise Unsupported("computing with a floating-point scalar in the launch function")
    if not modules.bodies:
        raise NoLaunch
    versions = [re.search(r"\.version (\d+)\.(\d+)", ptx) for ptx in ptx_of.values()]
    version = "%d.%d" % max((int(found[1]), int(found[2])) for found in versions)
    return "\n".join(line for table in lines.values() for line in table) + "\n" + modules.text(version)


def main():
    with open(sys.argv[1]) as file:
        request = json.load(file)
    try:
        text = record(request)
    except Unsupported as error:
        print(error, file=sys.stderr)
        return UNSUPPORTED
    except NoLaunch:
        return NO_LAUNCH
    except BaseException as error:  # whatever the candidate does
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == request["source"]]
        line = error.lineno if isinstance(error, SyntaxError) and error.filename == request["source"] else own[-1].lineno if own else 0
        print(f"kernel.py:{line}: " * (line > 0) + (str(error) if isinstance(error, OwnFault) else f"{type(error).__name__}: {error}"[:4000]), file=sys.stderr)
        # An error outside the candidate's lines: this Triton differs from the ones that this file knows.
        return WRONG if line > 0 or isinstance(error, OwnFault) else UNSUPPORTED
    with open(OUT, "w") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # threads of the candidate do not matter
