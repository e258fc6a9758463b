"""Generates a plain CUDA reference from what was recorded of forward: one kernel an operator, in order.

operators.py holds the kernels. Views cost nothing: a tensor is a buffer, an offset and strides, as PyTorch recorded
them, written as expressions over the problem's symbols (expressions.py). Used by one_problem.py.
"""
import re

import torch

import offline_style
from record import View, views

MOST_CALLS = 300
C_TYPES = {torch.float32: "float", torch.float64: "double", torch.int64: "long long", torch.int32: "int",
           torch.bool: "bool", torch.uint8: "unsigned char", torch.int8: "signed char"}
PARAMETER_TYPES = {"float32": "float", "float64": "double", "float16": "__half", "bfloat16": "__nv_bfloat16",
                   "int32": "int", "int64": "long long", "uint8": "unsigned char", "int8": "signed char",
                   "bool": "bool"}


class Missing(Exception):
    """No reference can be generated; the text says what is missing."""


def summed(call):
    """How many terms one element of the call's result sums."""
    inputs, results = views(call.args), views(call.results)
    if not inputs or not results:
        return 1
    op = call.operator
    if op in ("mm", "bmm"):
        return inputs[0].shape[-1]
    if op in ("addmm", "baddbmm"):
        return inputs[1].shape[-1]
    if op == "convolution":
        weight, transposed, groups = inputs[1], call.args[6], call.args[8]
        taps = weight.numel() // (weight.shape[0] * weight.shape[1])
        return taps * (weight.shape[0] // groups if transposed else weight.shape[1])
    if op in ("native_batch_norm", "native_group_norm", "native_layer_norm") and len(results) > 1:
        return max(1, inputs[0].numel() // max(1, results[1].numel()))
    if op in ("cumsum", "cumprod", "_softmax", "_log_softmax"):
        return inputs[0].shape[call.args[1]]
    if op in ("sum", "mean", "prod", "logsumexp", "linalg_vector_norm", "avg_pool2d", "avg_pool3d", "avg_pool1d", "var"):
        return max(1, inputs[0].numel() // max(1, results[0].numel()))
    return 1


def c_type(dtype):
    if dtype not in C_TYPES:
        raise Missing(f"tensors of {dtype}")
    return C_TYPES[dtype]


def factor(text):
    return text if re.fullmatch(r"[\w*]+", text) else f"({text})"


def divisor(text):
    """The right operand of / or %, to which a product is no operand of its own."""
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def product(dims):
    kept = [factor(d) for d in dims if d != "1"]
    return "*".join(kept) if kept else "1"


class Tensor:
    """A view of a buffer: what operators.py works with. All numbers are expressions over the symbols."""

    def __init__(self, reference, buffer, columns):
        self.reference, self.buffer, self.columns = reference, buffer, columns
        self.first = columns[0]
        self.dtype = self.first.dtype
        self.dims = [reference.express([view.shape[d] for view in columns]) for d in range(len(self.first.shape))]
        self._strides = None

    @property
    def rank(self):
        return len(self.dims)

    def numel(self):
        return product(self.dims)

    def largest(self):
        """Elements of its buffer, at the largest size."""
        return max(view.tensor.untyped_storage().nbytes() // max(1, view.tensor.element_size())
                   for view in self.columns)

    def contiguous(self):
        return all(view.offset == 0 and _is_contiguous(view) for view in self.columns)

    def strides(self):
        if self._strides is None:
            self._strides = [self.reference.stride(self, d) for d in range(self.rank)]
        return self._strides

    def at(self, indices):
        """The element's text; `indices` has an expression for each dimension."""
        terms = []
        offset = self.reference.offset(self)
        if offset != "0":
            terms.append(offset)
        for index, stride in zip(indices, self.strides()):
            if stride != "0" and index != "0":
                terms.append(factor(index) if stride == "1" else f"{factor(index)}*{factor(stride)}")
        return f"{self.buffer.name}[{' + '.join(terms) if terms else '0'}]"

    def load(self, indices):
        text = self.at(indices)
        return f"(float){text}" if self.buffer.type in ("__half", "__nv_bfloat16") else text


def _is_contiguous(view):
    expected = 1
    for extent, stride in zip(reversed(view.shape), reversed(view.stride)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


class Buffer:
    """An array on the device: a parameter, or memory of the launch function's own."""

    def __init__(self, name, type_name, role, base):
        self.name, self.type, self.role, self.base = name, type_name, role, base  # role: input, output, own
        self.last_use = 0


class Reference:
    """`importer`: one_problem.Importer, whose sizes are traced and whose parameters have names."""

    def __init__(self, importer):
        import operators  # imported here because it imports this module
        self.importer, self.all_symbols = importer, importer.symbols
        self.kernels, self.kernel_names, self.steps = {}, {}, []
        self.maps, self.products, self.joinings = [], [], []  # read by offline_style.py
        traced = importer.traced
        names = [call.name for call in traced[0].calls]
        if any([call.name for call in other.calls] != names for other in traced[1:]):
            raise Missing("its operators differ from size to size")
        work = [call for call in traced[0].calls if not self._free(call)]
        if len(work) > MOST_CALLS:
            raise Missing(f"{len(work)} operators, more than {MOST_CALLS}")
        self.columns = list(traced)
        original = importer.at_original
        if original is not None and [call.name for call in original.calls] == names:
            self.columns.append(original)
        self.buffers = {}  # by the storage at the first size
        self._numbers = {}  # constants made by forward, by the call that uses them
        self.symbols = ""
        self._add_parameters()
        unknown = sorted({call.operator for call in work} - set(operators.KERNELS))
        if unknown:
            raise Missing("no kernel for " + ", ".join(unknown))
        self._find_last_uses()
        for i, call in enumerate(traced[0].calls):
            self.index = i
            self.call = call
            if self._free(call):
                self._pass_on(call)
            else:
                operators.KERNELS[call.operator](self)
        self._finish()

    # ---- buffers --------------------------------------------------------------------------------------------------

    @staticmethod
    def _free(call):
        """Whether the call computes nothing: a view, an empty tensor, or work on BatchNorm's counter."""
        results, inputs = views(call.results), views((call.args, call.kwargs))
        if not results:
            return True
        if call.operator in ("empty", "empty_like", "empty_strided", "new_empty"):
            return True
        if call.operator.endswith("_") and not call.operator.startswith("_"):
            return results[0].dtype == torch.int64 and results[0].shape == ()
        return bool(inputs) and all(result.storage == inputs[0].storage for result in results)

    def _add_parameters(self):
        importer = self.importer
        types = {p["name"]: PARAMETER_TYPES[p["dtype"]] for p in importer.parameters}
        for name, tensors_of, i in importer.tensor_names:
            columns = [View(tensors_of(traced)[i]) for traced in self.columns]
            self.buffers[columns[0].storage] = Buffer(name, types[name], "input", columns)
        self.output_name = importer.parameters[-1]["name"]
        self.output_type = types[self.output_name]
        outputs = list(importer.outputs)
        if len(self.columns) > len(outputs):
            outputs.append(importer.original_output)
        self.output = [View(tensor) for tensor in outputs]

    def _find_last_uses(self):
        self.last_use = {}
        for i, call in enumerate(self.columns[0].calls):
            for view in views((call.args, call.kwargs)) + views(call.results):
                self.last_use[view.storage] = i
        self.reads = {}
        for i, call in enumerate(self.columns[0].calls):
            for view in views((call.args, call.kwargs)) if not self._free(call) else []:
                self.reads.setdefault(view.storage, []).append(i)

    def is_read(self, view):
        """Whether anything after this call reads the result, or it is the output."""
        later = [i for i in self.reads.get(view.storage, []) if i > self.index]
        return bool(later) or view.storage == self.output[0].storage

    def _column(self, path):
        """The same leaf of this call at every size."""
        return [path(traced.calls[self.index]) for traced in self.columns]

    def _buffer(self, columns, make):
        storage = columns[0].storage
        if storage in self.buffers:
            return self.buffers[storage]
        if not make:
            raise Missing("a constant that forward makes outside of PyTorch's operators")
        columns_there = [view for view in columns if view.tensor.device.type != "meta"]
        whole = [view.tensor.untyped_storage().nbytes() // view.tensor.element_size() for view in columns_there]
        # Of a number that an operator summed in place, the memory is what was summed.
        whole_view = all((n == view.numel() or view.shape == ()) and view.offset == 0 and _is_contiguous(view)
                         for n, view in zip(whole, columns))
        is_output = (storage == self.output[0].storage and whole_view and
                     all(_is_contiguous(view) and view.offset == 0 for view in self.output))
        if is_output:
            buffer = Buffer(self.output_name, self.output_type, "output", columns)
        else:
            buffer = Buffer(self._fresh(f"{self.call.operator.strip('_')}_{len(self.buffers)}"),
                            c_type(columns[0].dtype), "own", columns)
            dims = [self.express([view.shape[d] for view in columns]) for d in range(len(columns[0].shape))]
            if not whole_view and any(n != view.numel() or view.offset for n, view in zip(whole, columns)):
                raise Missing("a result with gaps")
            self.steps.append(("allocate", buffer, product(dims)))
        self.buffers[storage] = buffer
        return buffer

    def _fresh(self, name):
        taken = {buffer.name for buffer in self.buffers.values()} | set(self.all_symbols.values)
        while name in taken:
            name += "_"
        return name

    def _pass_on(self, call):
        """A view's buffer is its input's; an empty tensor gets one when it is written."""

    # ---- interface for operators.py -----------------------------------------------------------------------------

    def express(self, numbers):
        return self.all_symbols.express(numbers)

    def argument(self, position, name=None, default=None):
        """A plain argument; whole numbers that depend on the size come as expressions."""
        def path(call):
            if len(call.args) > position:
                return call.args[position]
            return call.kwargs.get(name, default)
        column = [self._plain(value) for value in self._column(path)]
        if all(value == column[0] for value in column[1:]):
            return column[0]
        if all(type(value) is int for value in column):
            return self.express(column)
        if all(isinstance(value, (list, tuple)) and len(value) == len(column[0]) for value in column):
            return [numbers[0] if len(set(numbers)) == 1 else self.express(numbers) for numbers in zip(*column)]
        if all(type(value) is float and value > 0 for value in column):
            for power, text in ((2, "rsqrtf((float)({}))"), (4, "rsqrtf(sqrtf((float)({})))")):  # attention's scale
                inverse = [value**-power for value in column]
                if all(abs(n - round(n)) < 1e-6 * n for n in inverse):
                    return text.format(self.express([round(n) for n in inverse]))
        raise Missing(f"{self.call.operator}'s {name or 'argument'} depends on the size")

    def tensor(self, position):
        """The tensor at an argument's position; None where it is None."""
        column = self._column(lambda call: call.args[position] if len(call.args) > position else None)
        if column[0] is None:
            return None
        if not isinstance(column[0], View):
            raise Missing(f"{self.call.operator} of a {type(column[0]).__name__}")
        return Tensor(self, self._buffer(column, False), column)

    def is_tensor(self, position):
        if len(self.call.args) <= position or not isinstance(self.call.args[position], View):
            return False
        return not self._is_number(self.call.args[position])

    def _is_number(self, view):
        """Whether a tensor is torch.tensor(1.5), made by forward itself."""
        return view.shape == () and view.storage not in self.buffers

    def _plain(self, value):
        """A constant of forward's own as the number that it is."""
        if not isinstance(value, View):
            return value
        constant = self._numbers.get(self.index)
        if constant is None:
            view = value if value.tensor.device.type != "meta" else None
            constant = self._numbers[self.index] = view.tensor.item() if view is not None else None
        return constant

    def tensor_list(self, position):
        count = len(self.call.args[position])
        columns = [self._column(lambda call, i=i: call.args[position][i]) for i in range(count)]
        return [Tensor(self, self._buffer(column, False), column) for column in columns]

    def result(self, i=0):
        column = self._column(lambda call: views(call.results)[i])
        buffer = self._buffer(column, True)
        if buffer.role == "input":
            raise Missing("forward writes to its input")
        return Tensor(self, buffer, column)

    def stride(self, tensor, d):
        """A dimension's stride as an expression."""
        numbers = [view.stride[d] if view.shape[d] != 1 else 0 for view in tensor.columns]
        if all(n == 0 for n in numbers):
            return "0"
        for i, view in enumerate(tensor.columns):  # a dimension of 1 may have any stride
            if view.shape[d] == 1:
                numbers[i] = view.stride[d]
        for shape, dims in self._shapes_near(tensor):
            for first in range(len(dims) + 1):
                if all(_product(s[first:]) == n for s, n in zip(shape, numbers)):
                    return product(dims[first:])
        for shape, dims in self._shapes_near(tensor):
            for first in range(len(dims) + 1):
                for own in range(d + 1, tensor.rank + 1):
                    if all(_product(s[first:]) * _product(view.shape[d + 1:own]) == n
                           for s, view, n in zip(shape, tensor.columns, numbers)):
                        return product(dims[first:] + tensor.dims[d + 1:own])
                for factor_ in range(2, 9):
                    if all(_product(s[first:]) * factor_ == n for s, n in zip(shape, numbers)):
                        return product([str(factor_)] + dims[first:])
        return self.express(numbers)

    def offset(self, tensor):
        numbers = [view.offset for view in tensor.columns]
        if all(n == 0 for n in numbers):
            return "0"
        for shape, dims in self._shapes_near(tensor):
            for first in range(len(dims) + 1):
                units = [_product(s[first:]) for s in shape]
                times = {n // u if u and n % u == 0 else None for n, u in zip(numbers, units)}
                if len(times) == 1 and None not in times:
                    return product([str(times.pop())] + dims[first:])
                if None not in times and units != [1] * len(units):
                    counts = [n // u for n, u in zip(numbers, units)]
                    known = self.all_symbols._search(tuple(counts))
                    if known:
                        return product([self.express(counts)] + dims[first:])
        return self.express(numbers)

    def _shapes_near(self, tensor):
        """Shapes whose products strides are made of: the tensor's own, and its buffer's."""
        base = tensor.buffer.base
        base_dims = [self.express([view.shape[d] for view in base]) for d in range(len(base[0].shape))]
        return [([view.shape for view in tensor.columns], tensor.dims), ([view.shape for view in base], base_dims)]

    # ---- kernels and the launch function ----------------------------------------------------------------------------

    def launch(self, name, comment, blocks, body, tensors, threads="256", results=()):
        """Adds a kernel and its launch. `body`: its lines, in which I is the index type; `blocks`: the grid's size;
        `tensors`: those it reads and writes, whose buffers become its parameters, `results` those it writes."""
        written = {id(t.buffer) for t in results}
        buffers = []
        for tensor in tensors:
            if tensor is not None and tensor.buffer not in buffers:
                buffers.append(tensor.buffer)
        wide = any(t is not None and t.largest() >= 2**31 for t in tensors)
        index = "long long" if wide else "int"
        text = "\n".join("  " + line if line else "" for line in body)
        text = re.sub(r"\bI\b", index, text)
        used = sorted(s for s in self.all_symbols.values if re.search(rf"\b{re.escape(s)}\b", text))
        # Pointers are named by their position, so that the same operator on other tensors gives the same kernel.
        places = {}
        for kind, chosen in (("in", [b for b in buffers if id(b) not in written]),
                             ("out", [b for b in buffers if id(b) in written])):
            places.update((b.name, kind if len(chosen) == 1 else f"{kind}{i}") for i, b in enumerate(chosen))
        text = re.sub(r"\b(" + "|".join(map(re.escape, places)) + r")\[", lambda m: places[m[1]] + "[", text)
        parameters = [f"{'' if id(b) in written else 'const '}{b.type}* {places[b.name]}" for b in buffers]
        parameters += [f"{index} {symbol}" for symbol in used]
        key = (comment, tuple(parameters), text)
        if key not in self.kernels:
            self.kernel_names[name] = self.kernel_names.get(name, 0) + 1
            count = self.kernel_names[name]
            self.kernels[key] = name + ("_kernel" if count == 1 else f"_kernel_{count}")
        arguments = [buffer.name for buffer in buffers] + used
        self.symbols += " " + " ".join(used) + " " + blocks
        self.steps.append(("launch", self.kernels[key], blocks, threads, arguments, buffers, self.index))

    def _finish(self):
        """Copies what forward returns into the output where it is not computed there."""
        import operators
        self.index = len(self.columns[0].calls)
        if self.output[0].storage in self.buffers and self.buffers[self.output[0].storage].role == "output":
            return
        source = Tensor(self, self._buffer(self.output, False), self.output)
        base = [_Contiguous(view) for view in self.output]
        target = Tensor(self, Buffer(self.output_name, self.output_type, "output", base), base)
        operators.copy(self, source, target)

    def source(self):
        """A function of the whole signature that gives reference.cu's text; the scalars that it asks for by name and value,
        None for the symbols themselves; and new names of parameters."""
        styled = offline_style.styled(self)
        if styled is not None:
            text, scalars, names = styled
            self.symbols = " ".join(scalars.values())
            return lambda signature: text, scalars, names
        declared = {}
        for key, name in self.kernels.items():
            declared.setdefault(name, key)
        lines = []
        for name, (comment, parameters, text) in declared.items():
            lines += [f"// {comment}", f"__global__ void {name}({', '.join(parameters)}) {{", text, "}", ""]
        body = []
        last = {}
        for position, step in enumerate(self.steps):
            if step[0] == "launch":
                for buffer in step[5]:
                    if buffer.role == "own":
                        last[id(buffer)] = position
        for position, step in enumerate(self.steps):
            if step[0] == "allocate":
                _, buffer, count = step
                self.symbols += " " + count
                if id(buffer) not in last:
                    continue
                body.append(f"  {buffer.type}* {buffer.name};")
                body.append(f"  cudaMallocAsync(&{buffer.name}, sizeof({buffer.type}) * {factor(count)}, 0);")
                continue
            _, kernel, blocks, threads, arguments, buffers, _ = step
            body.append(f"  {kernel}<<<{blocks}, {threads}>>>({', '.join(arguments)});")
            for buffer in buffers:
                if buffer.role == "own" and last[id(buffer)] == position:
                    body.append(f"  cudaFreeAsync({buffer.name}, 0);")
        helpers = ["// A block of 256 threads for every so many elements.",
                   "static unsigned blocks_for(long long elements) { return (unsigned)((elements + 255) / 256); }", ""]
        for name in ("block_max", "block_sum"):
            if any(name + "(" in key[2] for key in self.kernels):
                import operators
                helpers = operators.BLOCK_HELPERS[name] + helpers

        def write(signature):
            statements = members(signature, "\n".join(body)) + body
            text = (f"// {self.importer.title}: a plain kernel an operator, generated from PyTorch's trace.\n\n" +
                    "\n".join(helpers + lines) + "\n" + declaration(signature) + " {\n" + "\n".join(statements) + "\n}\n")
            types = {p["dtype"] for p in signature}
            for dtype, header in (("bfloat16", "cuda_bf16.h"), ("float16", "cuda_fp16.h")):
                if dtype in types:
                    text = f"#include <{header}>\n" + text
            return text
        return write, None, {}


class _Contiguous:
    """How the output lies in the memory that a kernel is given for it."""

    def __init__(self, view):
        self.shape, self.dtype, self.offset, self.tensor = view.shape, view.dtype, 0, view.tensor
        strides, stride = [], 1
        for extent in reversed(view.shape):
            strides.insert(0, stride)
            stride *= extent
        self.stride, self.storage = tuple(strides), None

    def numel(self):
        return _product(self.shape)


def _product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result


def declaration(signature):
    parts = []
    for i, parameter in enumerate(signature):
        kind, of_list = PARAMETER_TYPES[parameter["dtype"]], parameter.get("list")
        const = "const " if parameter["role"] == "input" else ""
        if parameter["role"] == "scalar":
            parts.append(f"{kind} {parameter['name']}")
        elif of_list is None:
            parts.append(f"{const}{kind}* {parameter['name']}")
        elif i == 0 or signature[i - 1].get("list") != of_list:
            parts.append(f"{const}{kind}* const* {of_list}")
    return f"extern \"C\" void launch({', '.join(parts)})"


def members(signature, body):
    """Lines that give the tensors of lists their names, as far as `body` has them."""
    lines, place = [], {}
    for parameter in signature:
        if "list" not in parameter:
            continue
        name, of_list = parameter["name"], parameter["list"]
        place[of_list] = place.get(of_list, -1) + 1
        if re.search(rf"\b{name}\b", body):
            lines.append(f"  const {PARAMETER_TYPES[parameter['dtype']]}* {name} = {of_list}[{place[of_list]}];")
    return lines


def without_kernels(signature, missing):
    """reference.cu where no kernels can be generated: the signature to implement."""
    return (f"// No reference kernel could be generated: {missing}.\n"
            "// What is to be computed is in problem.yaml, as PyTorch's source.\n" + declaration(signature) + " {}\n")
