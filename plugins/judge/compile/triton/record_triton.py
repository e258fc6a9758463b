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

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ptx_modules import Modules
from stand_ins import DTYPES, Tensor, Unsupported, torch_module
sys.path.pop(0)  # the candidate finds neither

SM = 89  # wgmma and tensor maps of later ones are not interpreted
UNSUPPORTED, WRONG, NO_LAUNCH = 3, 4, 5
OUT = 3  # the descriptor
SUPPORTED = ((3, 4), (3, 9))  # Triton's versions, whose private interfaces this file uses


class NoLaunch(Exception):
    pass


class OwnFault(Exception):
    """A fault of the candidate's that no line of it has."""


class Named(float):
    """A floating scalar of the problem: its name stands in the table while nothing was computed from it."""


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
    torch_module(request["device"], (SM // 10, SM % 10))
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
    return "\n".join(line for table in lines.values() for line in table) + "\n" + modules.text(version, SM)


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
