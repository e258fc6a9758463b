"""The kernels of reference.py: for each operator of PyTorch a function that adds its launches.

Each is the plainest CUDA that is correct: a thread an element, or a block a row where elements are reduced.
"""
import math

import torch

from offline_rows import Joining
from reference import Missing, Tensor, divisor, factor, product

_JOIN = """\
// The {what} of one value a thread, over a block of 256 threads; every thread gets it.
__device__ float {name}(float value) {{
  __shared__ float shared[256];
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {{
    if (threadIdx.x < half) shared[threadIdx.x] = {join};
    __syncthreads();
  }}
  return shared[0];
}}
"""
BLOCK_HELPERS = {name: _JOIN.format(name=name, what=what, join=join.format("shared[threadIdx.x]",
                                                                       "shared[threadIdx.x + half]")).split("\n")
                 for name, what, join in (("block_sum", "sum", "{0} + {1}"), ("block_max", "largest", "fmaxf({0}, {1})"))}


def number(value):
    """A number as a C literal of float."""
    if isinstance(value, str):  # an expression over the symbols
        return value if value.startswith("rsqrtf") else f"(float)({value})"
    if isinstance(value, bool):
        return "1.0f" if value else "0.0f"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = repr(float(value))
    return text + "f" if "e" in text or "." in text else text + ".0f"


def plus(term):
    return "" if term == 0 else f" + {factor(str(term))}"


def minus(term):
    return "" if term == 0 else f" - {factor(str(term))}"


def index_names(rank):
    return [f"i{d}" for d in range(rank)]


def split_index(source, dims, names, indent=""):
    """Lines that take a flat index apart; the first dimension is what is left."""
    kept = [d for d in range(len(dims)) if dims[d] != "1"]
    lines = []
    if len(kept) <= 1:
        return [f"{indent}const I {names[d]} = {source};" for d in kept]
    lines.append(f"{indent}I rest_{source} = {source};")
    for d in reversed(kept[1:]):
        lines.append(f"{indent}const I {names[d]} = rest_{source} % {divisor(dims[d])};")
        lines.append(f"{indent}rest_{source} /= {divisor(dims[d])};")
    lines.append(f"{indent}const I {names[kept[0]]} = rest_{source};")
    return lines


def names_or_zero(dims, names):
    """Index expressions: 0 where a dimension has one element."""
    return [name if dim != "1" else "0" for dim, name in zip(dims, names)]


def broadcast(tensor, dims, names):
    """The indices of an operand that is broadcast to `dims`."""
    shift = len(dims) - tensor.rank
    return [names[d + shift] if tensor.dims[d] != "1" else "0" for d in range(tensor.rank)]


def threads_over(count):
    return ["const I i = blockIdx.x * (I)blockDim.x + threadIdx.x;", f"if (i >= {count}) return;"]


def element(result, names):
    """The element of a thread of its own."""
    return f"{result.buffer.name}[i]" if result.contiguous() else result.at(names)


def grid(count):
    return f"blocks_for(1LL*{count})" if count != "1" else "1"


def elementwise(ref, name, comment, result, operands, expression):
    """result = expression, in which {0}, {1}... are the operands' elements."""
    flat = result.contiguous() and all(o is None or (o.contiguous() and o.dims == result.dims) for o in operands)
    ref.maps.append((name, result, operands, expression, flat))
    names = names_or_zero(result.dims, index_names(result.rank))
    body = threads_over(result.numel())
    if flat:
        loads = [None if o is None else o.load_flat("i") for o in operands]
        target = f"{result.buffer.name}[i]"
    else:
        body += split_index("i", result.dims, index_names(result.rank))
        loads = [None if o is None else o.load(broadcast(o, result.dims, names)) for o in operands]
        target = f"{result.buffer.name}[i]" if result.contiguous() else result.at(names)
    for i, load in enumerate(loads):
        if load is not None:
            kind = "long long" if operands[i].dtype == torch.int64 else "float"
            body.append(f"const {kind} {'xyzw'[i]} = {load};")
    value = expression.format(*"xyzw"[:len(operands)])
    if result.buffer.type in ("__half", "__nv_bfloat16"):
        value = f"({result.buffer.type})({value})"
    body.append(f"{target} = {value};")
    inputs = [o for o in operands if o is not None]
    ref.launch(name, comment, grid(result.numel()), body, inputs + [result], results=[result])


def _load_flat(self, index):
    text = f"{self.buffer.name}[{index}]"
    return f"(float){text}" if self.buffer.type in ("__half", "__nv_bfloat16") else text


Tensor.load_flat = _load_flat


def copy(ref, source, result):
    elementwise(ref, "copy", "A copy in row-major order.", result, [source], "{0}")


def unary(expression, comment):
    def emit(ref):
        elementwise(ref, ref.call.operator.strip("_"), comment, ref.result(), [ref.tensor(0)], expression)
    return emit


def operand(ref, position):
    """A tensor, or a number as text."""
    return ref.tensor(position) if ref.is_tensor(position) else number(ref.argument(position))


def binary(symbol):
    def emit(ref):
        a, b = operand(ref, 0), operand(ref, 1)
        alpha = ref.argument(99, "alpha", 1)
        operands = [o for o in (a, b) if isinstance(o, Tensor)]
        left = "{0}" if isinstance(a, Tensor) else a
        right = ("{1}" if isinstance(a, Tensor) else "{0}") if isinstance(b, Tensor) else b
        if alpha != 1:
            right = f"{number(alpha)} * {right}"
        expression = symbol.format(left, right) if "{" in symbol else f"{left} {symbol} {right}"
        elementwise(ref, ref.call.operator.strip("_"), "Element by element.", ref.result(), operands, expression)
    return emit


def rounding_div(ref):
    if ref.argument(99, "rounding_mode") is not None:
        raise Missing("div with rounding")
    binary("/")(ref)


def leaky_relu(ref):
    slope = number(ref.argument(1, "negative_slope", 0.01))
    unary(f"{{0}} > 0.0f ? {{0}} : {slope} * {{0}}", "Leaky ReLU.")(ref)


def gelu(ref):
    if ref.argument(1, "approximate", "none") == "tanh":
        unary("0.5f * {0} * (1.0f + tanhf(0.7978845608028654f * ({0} + 0.044715f * {0} * {0} * {0})))",
              "GELU by tanh.")(ref)
    else:
        unary("0.5f * {0} * (1.0f + erff({0} * 0.7071067811865476f))", "GELU.")(ref)


def elu(ref):
    alpha, scale, input_scale = (ref.argument(i, n, 1) for i, n in ((1, "alpha"), (2, "scale"), (3, "input_scale")))
    unary(f"{number(scale)} * ({{0}} > 0.0f ? {{0}} : {number(alpha)} * expm1f({{0}} * {number(input_scale)}))",
          "ELU.")(ref)


def softplus(ref):
    beta, threshold = ref.argument(1, "beta", 1), ref.argument(2, "threshold", 20)
    scaled = "{0}" if beta == 1 else f"{{0}} * {number(beta)}"
    result = f"log1pf(expf({scaled}))" if beta == 1 else f"log1pf(expf({scaled})) / {number(beta)}"
    unary(f"{scaled} > {number(threshold)} ? {{0}} : {result}", "Softplus.")(ref)


def clamp(ref):
    low = ref.argument(1, "min") if ref.call.operator.strip("_") != "clamp_max" else None
    high = {"clamp_min": None, "clamp_max": ref.argument(1, "max")}.get(ref.call.operator.strip("_"),
                                                                      ref.argument(2, "max"))
    text = "{0}"
    if low is not None:
        text = f"fmaxf({text}, {number(low)})"
    if high is not None:
        text = f"fminf({text}, {number(high)})"
    unary(text, "Clamped.")(ref)


def hardtanh(ref):
    low, high = ref.argument(1, "min_val", -1), ref.argument(2, "max_val", 1)
    unary(f"fminf(fmaxf({{0}}, {number(low)}), {number(high)})", "Hardtanh.")(ref)


def power(ref):
    if ref.is_tensor(1) or not ref.is_tensor(0):
        raise Missing("pow by a tensor")
    exponent = ref.argument(1)
    text = {2: "{0} * {0}", 3: "{0} * {0} * {0}", 0.5: "sqrtf({0})", -0.5: "rsqrtf({0})"}.get(
        exponent, f"powf({{0}}, {number(exponent)})")
    unary(text, "A power.")(ref)


def masked_fill(ref):
    value = operand(ref, 2)
    x, mask = ref.tensor(0), ref.tensor(1)
    operands = [x, mask] + ([value] if isinstance(value, Tensor) else [])
    text = "{2}" if isinstance(value, Tensor) else value
    elementwise(ref, "masked_fill", "Replaced where the mask says so.", ref.result(), operands,
                f"{{1}} != 0.0f ? {text} : {{0}}")


def where(ref):
    elementwise(ref, "where", "One or the other.", ref.result(), [ref.tensor(0), ref.tensor(1), ref.tensor(2)],
                "{0} != 0.0f ? {1} : {2}")


def full(ref):
    op = ref.call.operator.strip("_")
    value = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "zero": 0, "ones": 1, "ones_like": 1, "new_ones": 1}.get(op)
    elementwise(ref, "fill", "One value.", ref.result(), [], number(ref.argument(1) if value is None else value))


def fill_(ref):
    elementwise(ref, "fill", "One value.", ref.result(), [], number(ref.argument(1)))


def copy_(ref):
    copy(ref, ref.tensor(1), ref.result())


def clone(ref):
    copy(ref, ref.tensor(0), ref.result())


def triangle(keep):
    def emit(ref):
        result, x = ref.result(), ref.tensor(0)
        diagonal = ref.argument(1, "diagonal", 0)
        names = names_or_zero(result.dims, index_names(result.rank))
        body = threads_over(result.numel()) + split_index("i", result.dims, index_names(result.rank))
        shifted = f"{names[-2]} + {diagonal}" if diagonal else names[-2]
        body.append(f"{result.buffer.name}[i] = {names[-1]} {keep} {shifted} ? {x.load(names)} : 0;")
        ref.launch(ref.call.operator.strip("_"), "A triangle of the matrix.", grid(result.numel()), body, [x, result],
                   results=[result])
    return emit


# ---- products -------------------------------------------------------------------------------------------------------


def _product_kernel(ref, a, b, bias, result, alpha=1, beta=1):
    ref.products.append((a, b, bias, result, alpha))
    rank = result.rank
    names = names_or_zero(result.dims, index_names(rank))
    body = threads_over(result.numel()) + split_index("i", result.dims, index_names(rank))
    lead = names[:-2]
    left, right = lead[-(a.rank - 2):] if a.rank > 2 else [], lead[-(b.rank - 2):] if b.rank > 2 else []
    body += ["float sum = 0.0f;",
             f"for (I k = 0; k < {a.dims[-1]}; ++k) sum += {a.load(left + [names[-2], 'k'])} * "
             f"{b.load(right + ['k', names[-1]])};"]
    total = "sum" if alpha == 1 else f"{number(alpha)} * sum"
    if bias is not None:
        term = bias.load(broadcast(bias, result.dims, names))
        total += f" + {term}" if beta == 1 else f" + {number(beta)} * {term}"
    body.append(_store(result, element(result, names), total))
    ref.launch("matmul", "A matrix product: a thread an element of the result.", grid(result.numel()), body,
               [a, b, bias, result], results=[result])


def _store(result, target, value):
    if result.buffer.type in ("__half", "__nv_bfloat16"):
        value = f"({result.buffer.type})({value})"
    return f"{target} = {value};"


def mm(ref):
    _product_kernel(ref, ref.tensor(0), ref.tensor(1), None, ref.result())


def addmm(ref):
    _product_kernel(ref, ref.tensor(1), ref.tensor(2), ref.tensor(0), ref.result(), ref.argument(99, "alpha", 1),
                    ref.argument(98, "beta", 1))


def convolution(ref):
    x, weight, bias, result = ref.tensor(0), ref.tensor(1), ref.tensor(2), ref.result()
    stride, padding, dilation, transposed, groups = (ref.argument(i) for i in (3, 4, 5, 6, 8))
    spatial = result.rank - 2

    def each(values):
        return list(values) * spatial if len(values) == 1 else list(values)
    stride, padding, dilation = each(stride), each(padding), each(dilation)
    names = names_or_zero(result.dims, index_names(result.rank))
    body = threads_over(result.numel()) + split_index("i", result.dims, index_names(result.rank))
    out_channels, in_channels = result.dims[1], x.dims[1]
    each_out = out_channels if groups == 1 else f"({factor(out_channels)}/{divisor(str(groups))})"
    each_in = in_channels if groups == 1 else f"({factor(in_channels)}/{divisor(str(groups))})"
    if groups != 1:
        body.append(f"const I group = {names[1]} / {each_out};")
    body.append("float sum = 0.0f;")
    body.append(f"for (I c = 0; c < {each_in}; ++c) {{")
    indent = "  "
    places = []
    for d in range(spatial):
        tap, extent = f"k{d}", x.dims[d + 2]
        body.append(f"{indent}for (I {tap} = 0; {tap} < {weight.dims[d + 2]}; ++{tap}) {{")
        indent += "  "
        shift = tap if dilation[d] == 1 else f"{tap}*{dilation[d]}"
        place = f"p{d}"
        if transposed:
            body.append(f"{indent}I {place} = {names[d + 2]}{plus(padding[d])} - {shift};")
            if stride[d] != 1:
                body.append(f"{indent}if ({place} % {stride[d]} != 0) continue;")
                body.append(f"{indent}{place} /= {stride[d]};")
        else:
            scaled = names[d + 2] if stride[d] == 1 else f"{names[d + 2]}*{stride[d]}"
            body.append(f"{indent}const I {place} = {scaled}{minus(padding[d])} + {shift};")
        if transposed or padding[d] != 0:
            body.append(f"{indent}if ({place} < 0 || {place} >= {factor(extent)}) continue;")
        places.append(place)
    taps = [f"k{d}" for d in range(spatial)]
    channel = "c" if groups == 1 else f"group*{each_in} + c"
    if transposed:
        out_channel = names[1] if groups == 1 else f"{names[1]} - group*{each_out}"
        filter_ = weight.load([channel, out_channel] + taps)
    else:
        filter_ = weight.load([names[1], "c"] + taps)
    body.append(f"{indent}sum += {x.load([names[0], channel] + places)} * {filter_};")
    for _ in range(spatial + 1):
        indent = indent[2:]
        body.append(indent + "}")
    total = "sum" if bias is None else f"sum + {bias.load([names[1]])}"
    body.append(_store(result, element(result, names), total))
    ref.launch("transposed_convolution" if transposed else "convolution",
               "A convolution: a thread an element of the result.", grid(result.numel()), body,
               [x, weight, bias, result], results=[result])


# ---- reductions -------------------------------------------------------------------------------------------------------


def _dimensions(ref, position, name, rank):
    dims = ref.argument(position, name)
    if dims is None or dims == [] or dims == ():
        return list(range(rank))
    dims = [dims] if isinstance(dims, int) else list(dims)
    return sorted(d % rank for d in dims)


class Rows:
    """The reduced and the kept dimensions of a tensor, with the loops over them: a block an element of the result."""

    def __init__(self, x, dims):
        self.x, self.dims = x, dims
        self.kept = [d for d in range(x.rank) if d not in dims]
        self.count = product([x.dims[d] for d in self.kept])
        self.length = product([x.dims[d] for d in dims])
        names = index_names(x.rank)
        self.names = names_or_zero(x.dims, names)
        self.header = ["const I row = blockIdx.x;"]
        self.header += split_index("row", [x.dims[d] for d in self.kept], [names[d] for d in self.kept])
        self._inner = split_index("j", [x.dims[d] for d in dims], [names[d] for d in dims], "  ")

    def loop(self, *lines):
        return ([f"for (I j = threadIdx.x; j < {factor(self.length)}; j += blockDim.x) {{"] + self._inner +
                ["  " + line for line in lines] + ["}"])

    def element(self):
        return self.x.load(self.names)

    def blocks(self):
        return "1" if self.count == "1" else f"(unsigned)({self.count})"


def _write_row(rows, result, value):
    if not result.contiguous():
        raise Missing("a reduction into memory that is not contiguous")
    return [f"if (threadIdx.x == 0) {_store(result, result.buffer.name + '[row]', value)}"]


def _reduce(ref, result, rows, name, comment, lines):
    ref.launch(name, comment, rows.blocks(), rows.header + lines, [rows.x, result], results=[result])


def total(finish):
    """sum and mean."""
    def emit(ref):
        x, result = ref.tensor(0), ref.result()
        rows = Rows(x, _dimensions(ref, 1, "dim", x.rank))
        ref.joinings.append(Joining(ref, "rows", x, result, rows.dims, "a + b", "0.0f", finish=finish.format("{0}", "{count}")))
        lines = ["float sum = 0.0f;"] + rows.loop(f"sum += {rows.element()};") + ["sum = block_sum(sum);"]
        length = f"(float)({rows.length})"
        _reduce(ref, result, rows, ref.call.operator, "A block a sum.",
                lines + _write_row(rows, result, finish.format("sum", length)))
    return emit


def vector_norm(ref):
    x, result = ref.tensor(0), ref.result()
    order = ref.argument(1, "ord", 2)
    rows = Rows(x, _dimensions(ref, 2, "dim", x.rank))
    e = rows.element()
    if order == 2:
        ref.joinings.append(Joining(ref, "rows", x, result, rows.dims, "a + b", "0.0f", "{0} * {0}", "sqrtf({0})"))
        lines = ["float sum = 0.0f;"] + rows.loop(f"const float x = {e};", "sum += x * x;")
        finish = "sqrtf(sum)"
    elif order == 1:
        ref.joinings.append(Joining(ref, "rows", x, result, rows.dims, "a + b", "0.0f", "fabsf({0})"))
        lines = ["float sum = 0.0f;"] + rows.loop(f"sum += fabsf({e});")
        finish = "sum"
    else:
        raise Missing(f"a norm of order {order}")
    _reduce(ref, result, rows, "norm", "A block a norm.",
            lines + ["sum = block_sum(sum);"] + _write_row(rows, result, finish))


def logsumexp(ref):
    x, result = ref.tensor(0), ref.result()
    rows = Rows(x, _dimensions(ref, 1, "dim", x.rank))
    lines = (["float largest = -INFINITY;"] + rows.loop(f"largest = fmaxf(largest, {rows.element()});") +
             ["largest = block_max(largest);", "float sum = 0.0f;"] +
             rows.loop(f"sum += expf({rows.element()} - largest);") + ["sum = block_sum(sum);"])
    _reduce(ref, result, rows, "logsumexp", "A block a sum of exponentials.",
            lines + _write_row(rows, result, "largest + logf(sum)"))


def extreme(sign):
    """amax, max over a dimension, and with sign -1 the smallest; indices are computed where they are read."""
    def emit(ref):
        x = ref.tensor(0)
        if ref.call.operator in ("amax", "amin"):
            dims = _dimensions(ref, 1, "dim", x.rank)
        else:
            if ref.is_tensor(1):
                return binary("fmaxf({0}, {1})" if sign > 0 else "fminf({0}, {1})")(ref)
            dims = _dimensions(ref, 1, "dim", x.rank) if len(ref.call.args) > 1 else list(range(x.rank))
        rows = Rows(x, dims)
        results = views_of(ref)
        if len(results) > 1 and ref.is_read(results[1]):
            raise Missing(f"the indices of {ref.call.operator}")
        result = ref.result()
        ref.joinings.append(Joining(ref, "rows", x, result, rows.dims, "fmaxf(a, b)" if sign > 0 else "fminf(a, b)",
                                    "-INFINITY" if sign > 0 else "INFINITY"))
        e = rows.element() if sign > 0 else f"-({rows.element()})"
        lines = ["float largest = -INFINITY;"] + rows.loop(f"largest = fmaxf(largest, {e});")
        lines.append("largest = block_max(largest);")
        _reduce(ref, result, rows, ref.call.operator, "A block an extreme.",
                lines + _write_row(rows, result, "largest" if sign > 0 else "-largest"))
    return emit


def views_of(ref):
    from record import views
    return views(ref.call.results)


def arg_extreme(comparison):
    def emit(ref):
        x, result = ref.tensor(0), ref.result()
        dims = _dimensions(ref, 1, "dim", x.rank)
        if len(dims) != 1:
            raise Missing("argmax over several dimensions")
        (d,) = dims
        names = index_names(x.rank)
        kept = [k for k in range(x.rank) if k != d]
        kept_dims = [x.dims[k] for k in kept]
        body = threads_over(product(kept_dims)) + split_index("i", kept_dims, [names[k] for k in kept])
        indices = names_or_zero(x.dims, names)
        first = list(indices)
        first[d] = "0"
        indices[d] = "j"
        body += [f"float best = {x.load(first)};", "I place = 0;", f"for (I j = 1; j < {factor(x.dims[d])}; ++j) {{",
                 f"  const float value = {x.load(indices)};",
                 f"  if (value {comparison} best) {{", "    best = value;", "    place = j;", "  }", "}",
                 f"{result.buffer.name}[i] = place;"]
        ref.launch(ref.call.operator, "Where the extreme is: a thread a row.", grid(product(kept_dims)), body,
                   [x, result], results=[result])
    return emit


def softmax(log):
    def emit(ref):
        x, result = ref.tensor(0), ref.result()
        rows = Rows(x, [ref.argument(1) % x.rank])
        finish = "value - maximum - logf(sum)" if log else "fdividef(expf(value - maximum), sum)"
        ref.joinings.append(Joining(ref, "softmax", x, result, rows.dims, finish=finish))
        e, target = rows.element(), result.at(rows.names)
        value = f"{e} - largest - logf(sum)" if log else f"expf({e} - largest) / sum"
        lines = (rows.header + ["float largest = -INFINITY;"] + rows.loop(f"largest = fmaxf(largest, {e});") +
                 ["largest = block_max(largest);", "float sum = 0.0f;"] + rows.loop(f"sum += expf({e} - largest);") +
                 ["sum = block_sum(sum);"] + rows.loop(_store(result, target, value)))
        ref.launch("log_softmax" if log else "softmax", "A block a row.", rows.blocks(), lines, [x, result],
                   results=[result])
    return emit


def scan(start, step):
    def emit(ref):
        x, result = ref.tensor(0), ref.result()
        d = ref.argument(1) % x.rank
        ref.joinings.append(Joining(ref, "scan", x, result, [d], f"a {step[0]} b", start))
        names = index_names(x.rank)
        kept = [k for k in range(x.rank) if k != d]
        kept_dims = [x.dims[k] for k in kept]
        body = threads_over(product(kept_dims)) + split_index("i", kept_dims, [names[k] for k in kept])
        indices = names_or_zero(x.dims, names)
        indices[d] = "j"
        body += [f"float running = {start};", f"for (I j = 0; j < {factor(x.dims[d])}; ++j) {{",
                 f"  running {step} {x.load(indices)};", f"  {_store(result, result.at(indices), 'running')}", "}"]
        ref.launch(ref.call.operator.strip("_"), "A thread a row, from its begin.", grid(product(kept_dims)), body,
                   [x, result], results=[result])
    return emit


def flip(ref):
    x, result = ref.tensor(0), ref.result()
    dims = _dimensions(ref, 1, "dims", x.rank)
    names = names_or_zero(result.dims, index_names(result.rank))
    body = threads_over(result.numel()) + split_index("i", result.dims, index_names(result.rank))
    source = [f"{factor(x.dims[d])} - 1 - {names[d]}" if d in dims else names[d] for d in range(x.rank)]
    body.append(f"{result.buffer.name}[i] = {x.load(source)};")
    ref.launch("flip", "Backwards.", grid(result.numel()), body, [x, result], results=[result])


def cat(ref):
    parts, result = ref.tensor_list(0), ref.result()
    d = ref.argument(1, "dim", 0) % result.rank
    before = []
    for part in parts:
        names = names_or_zero(part.dims, index_names(part.rank))
        if part.dims[d] == "1":
            names[d] = "0"
        target = list(names)
        shift = " + ".join(factor(b) for b in before)
        if shift:
            target[d] = shift if names[d] == "0" else f"{names[d]} + {shift}"
        body = threads_over(part.numel()) + split_index("i", part.dims, index_names(part.rank))
        body.append(_store(result, result.at(target), part.load(names)))
        ref.launch("concatenate", "One part of a concatenation.", grid(part.numel()), body, [part, result],
                   results=[result])
        before.append(part.dims[d])


def constant_pad(ref):
    x, result = ref.tensor(0), ref.result()
    pads, value = ref.argument(1), ref.argument(2, "value", 0)
    names = names_or_zero(result.dims, index_names(result.rank))
    body = threads_over(result.numel()) + split_index("i", result.dims, index_names(result.rank))
    inside, source = [], list(names)
    for k in range(len(pads) // 2):
        d, low = x.rank - 1 - k, pads[2 * k]
        source[d] = f"{names[d]} - {low}" if low >= 0 else f"{names[d]} + {-low}"
        inside.append(f"{source[d]} >= 0 && {source[d]} < {factor(x.dims[d])}")
    body.append(f"{result.buffer.name}[i] = {' && '.join(inside)} ? {x.load(source)} : {number(value)};")
    ref.launch("pad", "Padded.", grid(result.numel()), body, [x, result], results=[result])


# ---- windows --------------------------------------------------------------------------------------------------------


def _window(ref, average):
    x, result = ref.tensor(0), ref.result()
    if not average and len(views_of(ref)) > 1 and ref.is_read(views_of(ref)[1]):
        raise Missing("the indices of max pooling")
    op = ref.call.operator
    spatial = 3 if "3d" in op else 2 if "2d" in op else 1

    def each(values):
        return list(values) * spatial if len(values) == 1 else list(values)
    size = each(ref.argument(1))
    stride = each(ref.argument(2, "stride", []) or size)
    padding = each(ref.argument(3, "padding", [0]))
    dilation = [1] * spatial
    count_pad, beyond = True, False
    if average:
        if ref.argument(6, "divisor_override") is not None:
            raise Missing("average pooling with a divisor")
        count_pad = ref.argument(5, "count_include_pad", True)
        if ref.argument(4, "ceil_mode", False):
            raise Missing("pooling with ceil_mode")
    else:
        dilation = each(ref.argument(4, "dilation", [1]))
        beyond = ref.argument(5, "ceil_mode", False)  # the last window may extend beyond the end
    names = names_or_zero(result.dims, index_names(result.rank))
    body = threads_over(result.numel()) + split_index("i", result.dims, index_names(result.rank))
    body.append("float total = 0.0f;" if average else "float largest = -INFINITY;")
    if average and not count_pad:
        body.append("I count = 0;")
    indent, source = "", names[:x.rank - spatial]
    for d in range(spatial):
        place, tap = f"p{d}", f"k{d}"
        base = names[x.rank - spatial + d]
        base = base if stride[d] == 1 else f"{base}*{stride[d]}"
        shift = tap if dilation[d] == 1 else f"{tap}*{dilation[d]}"
        body.append(f"{indent}for (I {tap} = 0; {tap} < {size[d]}; ++{tap}) {{")
        indent += "  "
        body.append(f"{indent}const I {place} = {base}{minus(padding[d])} + {shift};")
        if padding[d] or beyond:
            body.append(f"{indent}if ({place} < 0 || {place} >= {factor(x.dims[x.rank - spatial + d])}) continue;")
        source.append(place)
    body.append(f"{indent}total += {x.load(source)};" if average else f"{indent}largest = fmaxf(largest, {x.load(source)});")
    if average and not count_pad:
        body.append(f"{indent}++count;")
    for _ in range(spatial):
        indent = indent[2:]
        body.append(indent + "}")
    taps = f"(float)({product([str(extent) for extent in size])})"
    value = f"total / {taps if count_pad else 'count'}" if average else "largest"
    body.append(_store(result, element(result, names), value))
    ref.launch("average_pool" if average else "max_pool", "A thread a window.", grid(result.numel()), body,
               [x, result], results=[result])


# ---- normalisation --------------------------------------------------------------------------------------------------


def _normalise(ref, x, rows, groups_index, weight, bias, channel, eps, result, mean, rstd):
    """Statistics of `rows` into mean and rstd, then every element of the result by them."""
    lines = (rows.header + ["float sum = 0.0f;"] + rows.loop(f"sum += {rows.element()};") +
             [f"const float mean = block_sum(sum) / (float)({rows.length});", "float squares = 0.0f;"] +
             rows.loop(f"const float distance = {rows.element()} - mean;", "squares += distance * distance;") +
             [f"const float variance = block_sum(squares) / (float)({rows.length});",
              "if (threadIdx.x == 0) {", f"  {mean.buffer.name}[row] = mean;",
              f"  {rstd.buffer.name}[row] = rsqrtf(variance + {number(eps)});", "}"])
    ref.launch("statistics", "Mean and reciprocal deviation: a block each.", rows.blocks(), lines,
               [rows.x, mean, rstd], results=[mean, rstd])
    names = names_or_zero(result.dims, index_names(result.rank))
    body = threads_over(result.numel()) + split_index("i", result.dims, index_names(result.rank))
    value = f"({x.load(names)} - {mean.buffer.name}[group]) * {rstd.buffer.name}[group]"
    body.append(f"const I group = {groups_index(names)};")
    if weight is not None:
        value += f" * {weight.load(channel(names))}"
    if bias is not None:
        value += f" + {bias.load(channel(names))}"
    body.append(_store(result, element(result, names), value))
    ref.launch("normalise", "A thread an element.", grid(result.numel()), body,
               [x, mean, rstd, weight, bias, result], results=[result])


def batch_norm(ref):
    x = ref.tensor(0)
    if not ref.argument(5):
        raise Missing("batch normalisation by running statistics")
    rows = Rows(x, [d for d in range(x.rank) if d != 1])
    _normalise(ref, x, rows, lambda names: names[1], ref.tensor(1), ref.tensor(2), lambda names: [names[1]],
               ref.argument(7), ref.result(0), ref.result(1), ref.result(2))


class _Grouped:
    """An input seen as [batch, groups, elements of a group]; only where it is contiguous."""

    def __init__(self, x, dims):
        self.x, self.dims, self.rank = x, dims, len(dims)
        self.buffer, self.dtype = x.buffer, x.dtype
        self.largest = x.largest

    def load(self, indices):
        text = product_index(indices, self.dims)
        name = f"{self.buffer.name}[{text}]"
        return f"(float){name}" if self.buffer.type in ("__half", "__nv_bfloat16") else name


def product_index(indices, dims):
    text = indices[0]
    for index, dim in zip(indices[1:], dims[1:]):
        text = index if text == "0" else f"({text})*{factor(dim)} + {index}"
    return text


def group_norm(ref):
    x = ref.tensor(0)
    if not x.contiguous():
        raise Missing("group normalisation of a tensor that is not contiguous")
    groups, eps = ref.argument(6), ref.argument(7)
    each = f"({factor(x.dims[1])}/{divisor(str(groups))})"
    rows = Rows(_Grouped(x, [x.dims[0], str(groups), product([each] + x.dims[2:])]), [2])
    _normalise(ref, x, rows, lambda names: f"{names[0]}*{factor(str(groups))} + {names[1]} / {each}", ref.tensor(1), ref.tensor(2),
               lambda names: [names[1]], eps, ref.result(0), ref.result(1), ref.result(2))


def layer_norm(ref):
    x = ref.tensor(0)
    if not x.contiguous():
        raise Missing("layer normalisation of a tensor that is not contiguous")
    lead = x.rank - len(ref.call.args[1])
    rows = Rows(_Grouped(x, [product(x.dims[:lead]), product(x.dims[lead:])]), [1])
    _normalise(ref, x, rows, lambda names: product_index(names[:lead], x.dims[:lead]), ref.tensor(2), ref.tensor(3),
               lambda names: names[lead:], ref.argument(4), ref.result(0), ref.result(1), ref.result(2))


def nll_loss(ref):
    x, target, result = ref.tensor(0), ref.tensor(1), ref.result(0)
    if ref.tensor(2) is not None or ref.argument(3) != 1:
        raise Missing("a weighted likelihood")
    body = ["float sum = 0.0f;", f"for (I j = threadIdx.x; j < {factor(x.dims[0])}; j += blockDim.x)",
            f"  sum -= {x.load(['j', target.at(['j'])])};", "sum = block_sum(sum);",
            f"if (threadIdx.x == 0) {_store(result, result.buffer.name + '[0]', f'sum / (float)({x.dims[0]})')}"]
    ref.launch("likelihood", "The mean of the targets' negative log probabilities.", "1", body, [x, target, result],
               results=[result])


def smooth_l1(ref):
    reduction, beta = ref.argument(2, "reduction", 1), ref.argument(3, "beta", 1.0)
    if reduction != 1:
        raise Missing("a loss that is not reduced")
    a, b, result = ref.tensor(0), ref.tensor(1), ref.result()
    rows = Rows(a, list(range(a.rank)))
    huber = ref.call.operator == "huber_loss"
    scale = "" if huber else f" / {number(beta)}"
    lines = ["float sum = 0.0f;"] + rows.loop(
        f"const float d = fabsf({rows.element()} - {b.load(rows.names)});",
        f"sum += d < {number(beta)} ? 0.5f * d * d{scale} : {number(beta) + ' * ' if huber else ''}(d - 0.5f * {number(beta)});") + [
        "sum = block_sum(sum);"]
    ref.launch(ref.call.operator, "The mean loss, by one block.", "1", rows.header + lines +
               _write_row(rows, result, f"sum / (float)({rows.length})"), [a, b, result], results=[result])


def mse(ref):
    if ref.argument(2, "reduction", 1) != 1:
        raise Missing("a loss that is not reduced")
    a, b, result = ref.tensor(0), ref.tensor(1), ref.result()
    rows = Rows(a, list(range(a.rank)))
    lines = ["float sum = 0.0f;"] + rows.loop(f"const float d = {rows.element()} - {b.load(rows.names)};",
                                              "sum += d * d;") + ["sum = block_sum(sum);"]
    ref.launch("mse_loss", "The mean square, by one block.", "1",
               rows.header + lines + _write_row(rows, result, f"sum / (float)({rows.length})"), [a, b, result],
               results=[result])


KERNELS = {
    "relu": unary("fmaxf({0}, 0.0f)", "ReLU."), "leaky_relu": leaky_relu,
    "sigmoid": unary("1.0f / (1.0f + expf(-{0}))", "Sigmoid."), "tanh": unary("tanhf({0})", "Hyperbolic tangent."),
    "gelu": gelu, "elu": elu, "softplus": softplus, "hardtanh": hardtanh, "clamp": clamp, "clamp_min": clamp,
    "clamp_max": clamp, "relu6": unary("fminf(fmaxf({0}, 0.0f), 6.0f)", "ReLU, at most 6."),
    "hardsigmoid": unary("fminf(fmaxf({0} + 3.0f, 0.0f), 6.0f) / 6.0f", "Hard sigmoid."),
    "hardswish": unary("{0} * fminf(fmaxf({0} + 3.0f, 0.0f), 6.0f) / 6.0f", "Hard swish."),
    "silu": unary("{0} / (1.0f + expf(-{0}))", "Swish."),
    "mish": unary("{0} * tanhf({0} > 20.0f ? {0} : log1pf(expf({0})))", "Mish."),
    "abs": unary("fabsf({0})", "Magnitude."), "neg": unary("-{0}", "Negated."), "exp": unary("expf({0})", "Exponential."),
    "log": unary("logf({0})", "Logarithm."), "sqrt": unary("sqrtf({0})", "Square root."),
    "rsqrt": unary("rsqrtf({0})", "Reciprocal square root."), "reciprocal": unary("1.0f / {0}", "Reciprocal."),
    "erf": unary("erff({0})", "Error function."), "sin": unary("sinf({0})", "Sine."), "cos": unary("cosf({0})", "Cosine."),
    "sign": unary("(float)(({0} > 0.0f) - ({0} < 0.0f))", "Sign."), "pow": power,
    "bitwise_not": unary("{0} == 0.0f", "Not."), "logical_not": unary("{0} == 0.0f", "Not."),
    "_to_copy": clone, "clone": clone, "copy_": copy_, "contiguous": clone,
    "add": binary("+"), "sub": binary("-"), "mul": binary("*"), "div": rounding_div, "rsub": binary("({1} - {0})"),
    "maximum": binary("fmaxf({0}, {1})"), "minimum": binary("fminf({0}, {1})"),
    "eq": binary("=="), "ne": binary("!="), "gt": binary(">"), "lt": binary("<"), "ge": binary(">="),
    "le": binary("<="), "masked_fill": masked_fill, "where": where,
    "zeros": full, "ones": full, "zeros_like": full, "ones_like": full, "new_zeros": full, "full": full,
    "full_like": full, "fill_": fill_, "zero_": full, "scalar_tensor": None,
    "triu": triangle(">="), "tril": triangle("<="),
    "mm": mm, "bmm": mm, "addmm": addmm, "baddbmm": addmm, "convolution": convolution,
    "sum": total("{0}"), "mean": total("{0} / {1}"), "linalg_vector_norm": vector_norm, "logsumexp": logsumexp,
    "amax": extreme(1), "amin": extreme(-1), "max": extreme(1), "min": extreme(-1), "argmax": arg_extreme(">"),
    "argmin": arg_extreme("<"), "_softmax": softmax(False), "_safe_softmax": softmax(False), "norm": vector_norm,
    "xlogy": binary("{0} == 0.0f ? 0.0f : {0} * logf({1})"), "special_xlogy": binary("{0} == 0.0f ? 0.0f : {0} * logf({1})"), "_log_softmax": softmax(True),
    "cumsum": scan("0.0f", "+="), "cumprod": scan("1.0f", "*="), "flip": flip, "cat": cat,
    "constant_pad_nd": constant_pad,
    "max_pool2d_with_indices": lambda ref: _window(ref, False), "max_pool3d_with_indices": lambda ref: _window(ref, False),
    "avg_pool2d": lambda ref: _window(ref, True), "avg_pool3d": lambda ref: _window(ref, True),
    "avg_pool1d": lambda ref: _window(ref, True),
    "native_batch_norm": batch_norm, "native_group_norm": group_norm, "native_layer_norm": layer_norm,
    "nll_loss_forward": nll_loss, "smooth_l1_loss": smooth_l1, "huber_loss": smooth_l1, "mse_loss": mse,
}
del KERNELS["scalar_tensor"]
# The in-place forms have the same kernels.
for _name in ("relu", "leaky_relu", "sigmoid", "tanh", "hardtanh", "clamp", "clamp_min", "clamp_max", "elu", "gelu", "silu",
              "mish", "hardswish", "hardsigmoid", "add", "sub", "mul", "div", "exp", "sqrt", "pow", "masked_fill",
              "triu", "tril", "neg", "abs", "cumsum"):
    KERNELS[_name + "_"] = KERNELS[_name]
