"""Imports one problem: sizes, oracles, tapes, parameters, flags and a generated reference, written as a problem folder.

Runs in a process of its own (import_kernelbench.py), since it executes the problem's code.
"""
import itertools
import math
import os
import re
import shutil
import time
import urllib.error

import torch

import flags
import problem_yaml
import reference
import tape
from expressions import Symbols, Unknown
from sizes import Shrinker
from source_file import BadSource, SourceFile
from traced import RANDOM, SEED, Refused, Traced

NAMES = ("visible_0", "visible_1", "hidden_0", "timing")
OTHER_SEED = 4242
DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16",
          torch.int32: "int32", torch.int64: "int64", torch.uint8: "uint8", torch.int8: "int8", torch.bool: "bool"}
PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
KEYWORDS = set("""auto bool break case catch char class const continue default delete do double else enum extern float
for goto if inline int long mutable namespace new operator out private public register return short signed sizeof static
struct switch template this throw try typedef union unsigned using void volatile while launch""".split())
KERNEL_NAMES = set("""I i j k c x y z w row sum total largest mean value group count place best running squares distance
variance""".split())  # variables of reference.py's kernels
MANY_WEIGHTS = 32  # more weights of one dtype become a list: an array of pointers in the signature
TAPE_BYTES = 1 << 20  # limit of one file: problems consist of text and small files


def identifier(name, taken, reserved=frozenset()):
    """A C identifier for a tensor or symbol of PyTorch's that no other has."""
    name = re.sub(r"\W", "_", name)
    if not re.match(r"[A-Za-z]", name):
        name = "p_" + name
    while name in KEYWORDS or name in taken or name in reserved or (reserved and re.fullmatch(r"[ikp]\d|(in|out)\d*", name)):
        name += "_"
    taken.add(name)
    return name


class Degenerate(Refused):
    """At the sizes tried a constant would pass."""


class Importer:
    """`level`, `number` and `file` (a path within the data set) name the problem; `options` are import_kernelbench's."""

    def __init__(self, level, number, file, text, options):
        self.level, self.number, self.file, self.text, self.options = level, number, file, text, options
        stem = re.sub(r"^\d+_", "", os.path.basename(file).removesuffix(".py"))
        words = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")
        self.name = f"kb_l{level}_{number:03d}_{words}"[:60].rstrip("_")
        self.title = stem.strip("_").replace("_", " ")
        self.flags = []
        self.started = time.time()

    # ---- sizes --------------------------------------------------------------------------------------------------

    def _choose_sizes(self, larger=1):
        """`larger`: than what suits most, where small outputs are all alike."""
        limit = self.started + self.options["search_seconds"]
        shrinker = Shrinker(self.source, lambda: time.time() > limit)
        found = []
        for target, budget, salt in ((7 * larger, 1e6 * larger**3, 0), (5 * larger, 1e6 * larger**3, 1),
                                     (9 * larger, 2e6 * larger**3, 2), (1024, 4e8, 1)):
            size = shrinker.find(target, budget, salt, found)
            if size is None:
                size = shrinker.find(target, 1e13, salt, ()) or (found and (found[-1], None)) or None
            if size is None and shrinker.original is not None and shrinker.original.cost < 1e11:
                size = (self.source.original(), shrinker.original)
            if size is None:
                # An error of the problem appears when this size is computed.
                size = (self._batch_of(2), None)
            found.append(size[0])
        self.sizes = found
        self.shrinker = shrinker

    def _batch_of(self, count):
        return {name: count if "batch" in name.lower() else value for name, value in self.source.original().items()}

    # ---- what forward does ----------------------------------------------------------------------------------------

    def _trace_sizes(self):
        """self.traced[i] and self.outputs[i]: at each size, with everything recorded."""
        self.traced, self.outputs = [], []
        for values in self.sizes:
            traced = Traced(self.source, values)
            self.outputs.append(traced.run())
            self.traced.append(traced)
        self.at_original = None
        if self.shrinker.original is not None:
            try:
                self.at_original = Traced(self.source, self.source.original(), "meta")
                self.original_output = self.at_original.run()
            except Exception:  # without the meta device the shapes at the original size are unknown
                self.at_original = None
        if self.at_original is None and self.options["sizes"] == "original":
            raise Refused("its shapes at the original size are not known: it does not run on PyTorch's meta device")

    def _check_forward(self):
        traced, output = self.traced[1], self.outputs[1]
        random = sorted({call.operator for call in traced.calls} & RANDOM)
        if random:
            raise Refused(f"forward draws random numbers ({', '.join(random)})")
        if output.dtype not in DTYPES:
            raise Refused(f"the output is {output.dtype}, which problem.yaml does not know")
        if not torch.equal(output, traced.run()):
            raise Refused("forward keeps state: the same inputs give another output in a second call")
        if output.is_floating_point() and not bool(torch.isfinite(output).all()):
            raise Refused("the output holds NaNs or infinities")
        others = []
        for seed in (7, 8):  # other weights and other inputs
            torch.manual_seed(seed)
            fresh = Traced.__new__(Traced)
            fresh.__dict__.update(traced.__dict__)
            with torch.no_grad():
                torch.manual_seed(seed)
                fresh.model = traced.module.Model(*traced.module.get_init_inputs())
            fresh.draw(seed)
            others.append(fresh.run())
        traced.draw(OTHER_SEED)
        inputs_only = traced.run()
        traced.draw(SEED)
        if output.is_floating_point():
            scale = max(float(output.double().square().mean().sqrt()), float(others[0].double().square().mean().sqrt()))
            same = all(float((other.double() - output.double()).abs().max()) <= 1e-4 * scale for other in others)
            if scale == 0 or same:
                raise Degenerate("degenerate: the output is the same for all inputs and weights")
            if scale < 1e-6:
                raise Degenerate("degenerate: the output is zero but for rounding errors")
            if float((inputs_only.double() - output.double()).abs().max()) <= 1e-4 * scale:
                self.flags.append("weak: the output hardly depends on the inputs")
            self.flags += flags.flags_of(self.source, self.shrinker, self.sizes[0], self.outputs,
                                         self.options["precision"])
        elif all(torch.equal(other, output) for other in others):
            raise Degenerate("degenerate: the output is the same for all inputs and weights")

    # ---- oracles --------------------------------------------------------------------------------------------------

    def _write_oracles(self, folder):
        """A TorchScript a size; each is compared with eager PyTorch on inputs of another seed."""
        os.makedirs(os.path.join(folder, "oracle"))
        self.oracle_dtype = "float64"
        for attempt in (torch.float64, torch.float32):
            try:
                for i, name in enumerate(NAMES):
                    if name == "timing" and self.options["sizes"] == "original":
                        continue
                    self._write_oracle(i, attempt, os.path.join(folder, "oracle", name + ".pt"))
                self.oracle_dtype = "float64" if attempt == torch.float64 else "float32"
                break
            except Degenerate:
                raise  # a float32 oracle would agree, but on rounding errors only
            except Refused:
                if attempt == torch.float32:
                    raise
            except RuntimeError as error:
                if attempt == torch.float32:
                    raise Refused(f"no oracle: {first_line(error)}") from None
            except MemoryError:
                raise Refused("it needs more memory than the import may take (--memory)") from None
        self._write_eager(os.path.join(folder, "oracle", "eager.pt"))

    def _write_oracle(self, i, dtype, file):
        traced = Traced(self.source, self.sizes[i])
        traced.draw(OTHER_SEED)
        expected = traced.run()
        tensors = traced.arguments(dtype)
        traced.draw(SEED)
        function = traced.oracle(dtype)
        function.save(file)
        got = torch.jit.load(file)(*tensors)
        if os.path.getsize(file) > TAPE_BYTES:
            raise Refused(f"its oracle takes {os.path.getsize(file) >> 20} MiB: forward holds data of its own")
        if expected.is_floating_point():
            scale = float(expected.double().square().mean().sqrt())
            error = float((got.double() - expected.double()).abs().max()) / max(scale, 1e-300)
            self.worst_error = max(getattr(self, "worst_error", 0), error)
            if not error <= 1e-3:
                raise Degenerate(f"degenerate: float32 and float64 differ by {error:.1e} of the output's magnitude")
        elif float((got != expected).double().mean()) > 1e-3:
            raise Refused("the oracle differs from eager PyTorch")

    def _write_eager(self, file):
        """forward in the problem's own precision: what a GPU times as PyTorch's baseline. A trace of small sizes where it
        holds at all of them; else, where it holds layers' sizes as numbers, one of the original size with a small batch.
        None where neither can be had."""
        few = [self._batch_of(2), self._batch_of(3)]
        for sizes in [self.sizes] + ([few] if few[0] != few[1] else []):
            if self._write_trace_that_holds(sizes, file):
                return

    def _write_trace_that_holds(self, sizes, file):
        """forward as a function of inputs and weights, traced at the first size, if it is right at all. Whether so."""
        dtype = PRECISIONS[self.options["precision"]]
        tolerance = 1e-4 if dtype == torch.float32 else 5e-2
        try:
            function = Traced(self.source, sizes[0]).oracle(dtype)
            for values in sizes:
                traced = Traced(self.source, values)
                expected = traced.run()
                got = function(*traced.arguments(dtype))
                if not torch.allclose(got.to(expected.dtype), expected, rtol=tolerance, atol=tolerance):
                    return False
            function.save(file)
        except Exception:  # the problem's own code fails at this size: an assertion, too little memory, ...
            if os.path.exists(file):
                os.remove(file)
            return False
        if os.path.getsize(file) <= TAPE_BYTES:
            return True
        os.remove(file)
        return False

    # ---- parameters ---------------------------------------------------------------------------------------------

    def _tuples(self, numbers):
        """A dimension's value at each size, from a function of Traced."""
        return tuple(numbers(traced) for traced in self._all())

    def _all(self):
        return self.traced + ([self.at_original] if self.at_original is not None else [])

    def _make_symbols(self):
        names, self.slot_names = set(), {}
        values = {}
        for slot in self.source.slots:
            column = [size[slot.name] for size in self.sizes]
            if self.at_original is not None:
                column.append(slot.value)
            if len(set(column)) > 1:
                values[identifier(slot.name, names, KERNEL_NAMES)] = tuple(column)
        self.symbols = Symbols(values)
        self.taken = names

    def _shape(self, tensors):
        shapes = [tuple(tensor.shape) for tensor in tensors]
        dims = [self.symbols.express(column, "size") for column in zip(*shapes)]
        return dims or ["1"]

    def _distribution(self, drawn, i):
        """`drawn`: of one tensor at each size what tape.distributions says."""
        kinds = {d and d[0] for d in drawn}
        if kinds == {"uniform"} or kinds == {"integers"}:
            return {"distribution": drawn[0][0], "low": self._bound([d[1] for d in drawn]),
                    "high": self._bound([d[2] for d in drawn])}
        if kinds == {"normal"}:
            return {"distribution": "normal", "mean": float(drawn[-1][1]), "deviation": float(drawn[-1][2])}
        if kinds == {"constant"}:
            return {"distribution": "constant", "value": float(drawn[-1][1])}
        return {"distribution": "torchscript"}

    def _bound(self, numbers):
        """A bound as an expression: a whole number, or PyTorch's usual a/sqrt(fan in), or the timing size's."""
        if all(float(n).is_integer() for n in numbers):
            if len(set(numbers)) == 1:
                return str(int(numbers[0]))
            return self.symbols.express([int(n) for n in numbers])
        if len(set(numbers)) == 1:
            return repr(numbers[0])
        sign = "-" if numbers[0] < 0 else ""
        for factor in (1, 6, 3, 2):
            squares = [factor / (n * n) for n in numbers if n]
            if len(squares) == len(numbers) and all(abs(s - round(s)) < 1e-6 * s for s in squares):
                text = self.symbols.express([round(s) for s in squares])
                return f"{sign}1/sqrt({text})" if factor == 1 else f"{sign}sqrt({factor}/({text}))"
        return repr(numbers[len(NAMES) - 1])

    def _make_parameters(self, folder):
        traced = self.traced
        self.parameters, self.tensor_names = [], []
        drawn_inputs = [tape.distributions(t.input_calls, list(t.tensors().values())) for t in self._all()]
        drawn_weights = [tape.distributions(t.init_calls, list(t.weights.values())) for t in self._all()]
        groups = [("input", list(traced[0].tensors()), lambda t: list(t.tensors().values()), drawn_inputs),
                  ("weight", list(traced[0].weights), lambda t: list(t.weights.values()), drawn_weights)]
        for kind, names, tensors_of, drawn in groups:
            for i, name in enumerate(names):
                tensors = [tensors_of(t)[i] for t in self._all()]
                if tensors[0].dtype not in DTYPES:
                    raise Refused(f"{name} is {tensors[0].dtype}, which problem.yaml does not know")
                symbol = identifier(name, self.taken)
                parameter = {"name": symbol, "role": "input", "dtype": self._dtype(tensors[0].dtype),
                             "shape": self._shape(tensors)}
                if tensors[0].dtype == torch.bool:
                    parameter.update({"distribution": "integers", "low": 0, "high": 1})
                else:
                    parameter.update(self._distribution([d[i] for d in drawn], i))
                if parameter["distribution"] == "torchscript":
                    self._write_tapes(folder, kind, i, symbol, tensors_of)
                self.parameters.append(parameter)
                self.tensor_names.append((symbol, tensors_of, i))
        self._list_many_weights(len(traced[0].tensors()))
        self.parameters.append({"name": identifier("output", self.taken), "role": "output",
                                "dtype": self._dtype(self.outputs[0].dtype),
                                "shape": self._shape(self.outputs + ([self.original_output] if self.at_original is not
                                                                     None else []))})
        self.numbers = []
        for name, value in traced[0].numbers().items():
            dtype = "float32" if isinstance(value, float) else "int32"
            if not isinstance(value, (int, float)):
                raise Refused(f"forward's argument {name} is a {type(value).__name__}")
            symbol = identifier(name, self.taken)
            self.numbers.append({"name": symbol, "role": "scalar", "dtype": dtype, "value": repr(value)})

    def _list_many_weights(self, first):
        """Makes a list of weights, from parameter `first` on, where there are many; neighbours of one dtype."""
        weights = self.parameters[first:]
        for dtype, run in itertools.groupby(weights, lambda parameter: parameter["dtype"]):
            run = list(run)
            if len(run) > MANY_WEIGHTS:
                name = identifier("weights", self.taken)
                for parameter in run:
                    parameter["list"] = name

    def _dtype(self, dtype):
        precision = PRECISIONS[self.options["precision"]]
        return DTYPES[precision if dtype == torch.float32 else dtype]

    def _write_tapes(self, folder, kind, i, symbol, tensors_of):
        os.makedirs(os.path.join(folder, "inputs"), exist_ok=True)
        for name, traced in zip(NAMES, self.traced):
            if name == "timing" and self.options["sizes"] == "original":
                # The meta device has no values, but a tensor of fixed shape may be computed from values.
                same = tensors_of(self.at_original)[i].shape == tensors_of(self.traced[0])[i].shape
                traced = self.traced[0] if same else self.at_original
            calls = traced.input_calls if kind == "input" else traced.init_calls
            try:
                function = tape.script(calls, [tensors_of(traced)[i]])
            except (KeyError, RuntimeError):
                raise Refused(f"{symbol} is made in a way that no tape records") from None
            file = os.path.join(folder, "inputs", f"{symbol}.{name}.pt")
            function.save(file)
            if os.path.getsize(file) > TAPE_BYTES:
                raise Refused(f"{symbol} holds data of its own: {os.path.getsize(file) >> 20} MiB")

    def _write_kernelbench_tapes(self, folder):
        """What KernelBench's own evaluation draws: all weights and all inputs, bit for bit after manual_seed."""
        traced = self.at_original if self.options["sizes"] == "original" else self.traced[NAMES.index("timing")]
        os.makedirs(os.path.join(folder, "tapes"), exist_ok=True)
        self.taped = True
        for name, calls, tensors in (("weights", traced.init_calls, list(traced.weights.values())),
                                     ("inputs", traced.input_calls, list(traced.tensors().values()))):
            try:
                function = tape.script(calls, tensors)
                if traced.device == "cpu":
                    torch.manual_seed(SEED)
                    again = function()
                    if not all(torch.equal(a, b.detach()) for a, b in zip(again, tensors)):
                        raise KeyError
            except (KeyError, RuntimeError):
                self.taped = False
                continue
            function.save(os.path.join(folder, "tapes", name + ".pt"))

    # ---- the folder ---------------------------------------------------------------------------------------------

    def _family(self):
        names = {call.operator for call in self.traced[0].calls}
        for family, operators in (("attention", {"_scaled_dot_product_flash_attention_for_cpu"}),
                                  ("convolution", {"convolution"}), ("matmul", {"mm", "bmm", "addmm", "baddbmm"}),
                                  ("pooling", {"max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d",
                                               "avg_pool3d"}),
                                  ("softmax", {"_softmax", "_log_softmax"}),
                                  ("normalisation", {"native_batch_norm", "native_group_norm", "native_layer_norm",
                                                     "linalg_vector_norm"}),
                                  ("scan", {"cumsum", "cumprod"}),
                                  ("reduction", {"sum", "mean", "max", "min", "argmax", "argmin", "amax", "prod"})):
            if names & operators:
                return {1: family, 2: family + "_fused", 3: "network"}.get(self.level, family)
        return {1: "elementwise", 2: "elementwise", 3: "network"}.get(self.level, "elementwise")

    def _accumulations(self):
        """The longest sum, times how many operators sum: for the default tolerance."""
        lengths = [[reference.summed(call) for call in traced.calls] for traced in self.traced]
        if len({len(column) for column in lengths}) != 1:
            return str(max(max(column, default=1) for column in lengths) * 8)
        columns = [column for column in zip(*lengths) if max(column) > 1]
        if not columns:
            return "1"
        longest = max(columns, key=lambda column: column[NAMES.index("timing")])
        if self.at_original is not None and len(self.at_original.calls) == len(lengths[0]):
            index = list(zip(*lengths)).index(longest)
            longest = (*longest, reference.summed(self.at_original.calls[index]))
        elif self.at_original is not None:
            return str(max(longest) * len(columns))
        return f"{self.symbols.express(longest)}" + (f" * {len(columns)}" if len(columns) > 1 else "")

    def _roundings(self, accumulations):
        """`accumulations`, or more where eager PyTorch itself, in float32, uses more than half of the tolerance that they
        give: a normalisation of few elements multiplies the errors of what comes before it."""
        error = getattr(self, "worst_error", 0) * 2**24
        longest = max(max((reference.summed(call) for call in traced.calls), default=1) for traced in self.traced[:-1])
        if 2 * error <= 18 + 8 * longest**0.5:  # docs/judging.md, "Tolerance"
            return accumulations
        return f"max({accumulations}, {math.ceil(((2 * error - 18) / 8)**2)})"

    def _describe(self):
        lines = ["Compute what this PyTorch module's forward returns; weights and buffers come as arguments.",
                 "Normalisation layers work in training mode, by the batch's own statistics."]
        return "\n".join(lines) + "\n\n" + self.text.strip("\n") + "\n"

    def _flow_size(self, i):
        place = len(NAMES) if NAMES[i] == "timing" and self.options["sizes"] == "original" else i
        return {name: self.symbols.values[name][place] for name in sorted(self.used)}

    def _base(self):
        return {"name": self.name, "title": self.title, "source": self.file, "description": self._describe(),
                "family": "refused", "split": "heldout" if self.number % 5 == 0 else "train",
                "traits": [f"KernelBench level {self.level}"] + self._size_traits(), "flags": self.flags}

    def _size_traits(self):
        """`eval suite` compares no times at other sizes with PyTorch's at the original ones."""
        return ["small sizes"] if self.options["sizes"] == "small" else []

    def refuse(self, folder, why):
        """A folder that says why the problem is not there."""
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        problem = {**self._base(), "refused": why}
        with open(os.path.join(folder, "problem.yaml"), "w", encoding="utf-8") as file:
            file.write(problem_yaml.write(problem))

    def _write_computation(self, folder, larger):
        """Sizes, parameters, tapes and oracles."""
        self._choose_sizes(larger)
        self._trace_sizes()
        self._check_forward()
        self._make_symbols()
        self._make_parameters(folder)
        self._write_oracles(folder)

    def write(self, folder):
        """Writes the problem into `folder`, which is there and empty; returns what the summary says of it."""
        self.source = SourceFile(self.file, self.text)
        try:
            self._write_computation(folder, larger=1)
        except Degenerate:
            self.flags, self.worst_error = [], 0
            shutil.rmtree(folder)
            os.makedirs(folder)
            self._write_computation(folder, larger=8)
        self._write_kernelbench_tapes(folder)
        accumulations = self._roundings(self._accumulations())
        missing = None
        try:
            kernels = reference.Reference(self)
            source, named, renamed = kernels.source()
            for parameter in self.parameters:
                parameter["name"] = renamed.get(parameter["name"], parameter["name"])
        except (reference.Missing, Unknown) as error:
            missing, source, named = str(error), None, None
        shapes = " ".join(str(value) for p in self.parameters for key in ("shape", "low", "high") if key in p
                          for value in (p[key] if isinstance(p[key], list) else [p[key]]))
        words = set(re.findall(r"[A-Za-z_]\w*", shapes + " " + accumulations + " " + (kernels.symbols if source else "")))
        self.used = words & set(self.symbols.values)
        if not self.used:  # problem.yaml needs at least one symbol
            self.symbols.values["one"] = (1,) * (len(NAMES) + 1)
            self.used = {"one"}
        named = named or {name: name for name in sorted(self.used)}
        scalars = [{"name": name, "role": "scalar", "dtype": "int32", "value": value} for name, value in named.items()]
        signature = self.parameters + self.numbers + scalars
        sizes_bytes = [f"{_bytes(p['dtype'])}*{'*'.join(_factor(d) for d in p['shape'])}" for p in self.parameters]
        problem = {**self._base(), "family": self._family(), "parameters": signature,
                   "oracle_dtype": self.oracle_dtype, "has_reference": source is not None,
                   "visible": [self._flow_size(0), self._flow_size(1)], "hidden": [self._flow_size(2)],
                   "timing": self._flow_size(3), "accumulations": accumulations,
                   "needs": {"bytes": self._needed_bytes(sizes_bytes), "flops": "1"}}
        with open(os.path.join(folder, "problem.yaml"), "w", encoding="utf-8") as file:
            file.write(problem_yaml.write(problem))
        with open(os.path.join(folder, "reference.cu"), "w", encoding="utf-8") as file:
            file.write(source(signature) if source else reference.without_kernels(signature, missing))
        return {"reference": "generated" if source else f"none: {missing}", "flags": self.flags,
                "taped": self.taped, "oracle": self.oracle_dtype, "error": getattr(self, "worst_error", 0.0)}

    def _needed_bytes(self, sizes_bytes):
        """The output's, and the inputs' where every element of each is read."""
        partial = {"slice", "select", "index", "triu", "tril", "gather", "embedding", "index_select", "narrow"}
        if partial & {call.operator for call in self.traced[0].calls}:
            return sizes_bytes[-1]
        return " + ".join(sizes_bytes)


def _bytes(dtype):
    return {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}.get(dtype, 1)


def _factor(dimension):
    return dimension if re.fullmatch(r"[\w*]+", dimension) else f"({dimension})"


def first_line(error):
    """What an error of the problem's own code says, in a line."""
    if "can't allocate memory" in str(error):
        return "it needs more memory than the import may take (--memory)"
    if isinstance(error, (ConnectionError, urllib.error.URLError)):
        return f"it downloads something: {error}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines and lines[0].startswith('The following') else lines[0] if lines else ''}"[:300]


def working_folder(out, name):
    """Where a problem is written before it takes its place in OUT."""
    return os.path.join(out, ".import", name)


def import_problem(level, number, file, text, options, out):
    """Writes OUT/NAME; returns the summary's row. Never raises for what the problem does."""
    importer = Importer(level, number, file, text, options)
    row = {"level": level, "number": number, "name": importer.name, "file": file}
    folder = os.path.join(out, importer.name)
    working = working_folder(out, importer.name)
    shutil.rmtree(working, ignore_errors=True)
    os.makedirs(working)
    started = time.process_time()
    try:
        row.update(importer.write(working), status="imported")
    except (BadSource, Refused) as error:
        row.update(status="refused", reason=str(error))
    except MemoryError:
        row.update(status="refused", reason="it needs more memory than the import may take")
    except Exception as error:  # raised by the problem's own code
        if options.get("debug"):
            raise
        row.update(status="refused", reason=first_line(error))
    if row["status"] == "refused":
        importer.refuse(working, row["reason"])
    row["cpu_seconds"] = round(time.process_time() - started, 2)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(working, folder)
    return row
