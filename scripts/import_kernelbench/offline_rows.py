"""References in the style that coder_offline reads (docs/coder_offline.md) for problems that join the elements of rows:
"rows" (a number a row), "reduction" (one number), "softmax" and "scan". Used by offline_style.py.

Element by element operators before the joining become `load`, those after it `finish`.
"""
import re

_ROWS = """\
// kernels: a warp a row, joined by shuffles.
// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_combine(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

__global__ void rows_kernel(@parameters@, int rows, int cols) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
@row_pointers@
  float total = identity();
  for (int col = lane; col < cols; col += 32) {
    total = combine(total, load(@loads@));
  }
  total = warp_combine(total);
  if (lane == 0) @out@[row] = finish(total@more@);
}

extern "C" void launch(@parameters@, int rows, int cols) {
  rows_kernel<<<(rows + 7) / 8, 256>>>(@arguments@, rows, cols);
}
"""

_REDUCTION = """\
// kernels: each thread walks a chunk of neighbouring elements, blocks join by a tree in shared memory, a second kernel joins the blocks.
constexpr int kMostBlocks = 1024;
__device__ float block_totals[kMostBlocks];

// Thread 0 gets the joined value of all threads of the block.
__device__ float block_join(float value) {
  __shared__ float values[256];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int distance = 1; distance < 256; distance *= 2) {
    if (threadIdx.x % (2 * distance) == 0) {
      values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + distance]);
    }
    __syncthreads();
  }

  value = values[0];
  __syncthreads();  // values may be used again
  return value;
}

__global__ void reduce_kernel(@parameters@, int n) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int threads = gridDim.x * blockDim.x;
  float total = identity();
  const int chunk = (n + threads - 1) / threads;
  const int end = min((thread + 1) * chunk, n);
  for (int i = thread * chunk; i < end; ++i) {
    total = combine(total, load(@loads@));
  }
  float joined = block_join(total);
  if (threadIdx.x == 0) block_totals[blockIdx.x] = joined;
}

__global__ void join_blocks_kernel(@parameters@, int n, int blocks) {
  float total = identity();
  for (int i = 0; i < blocks; ++i) total = combine(total, block_totals[i]);
  @out@[0] = finish(total@more@);
}

extern "C" void launch(@parameters@, int n) {
  const int needed = (n + 256 - 1) / 256;
  const int blocks = needed < kMostBlocks ? needed : kMostBlocks;
  reduce_kernel<<<blocks, 256>>>(@arguments@, n);
  join_blocks_kernel<<<1, 1>>>(@arguments@, n, blocks);
}
"""

_SOFTMAX = """\
// kernels: a warp a row, joined by shuffles, a sweep for each statistic.
constexpr float kLowest = -3.402823466e38f;  // the most negative float

// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = value + __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void softmax_kernel(@parameters@, int rows, int cols) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
@row_pointers@
  float* @out@_row = @out@ + (size_t)row * cols;

  float maximum = kLowest;
  for (int col = lane; col < cols; col += 32) {
    const float value = load(@loads@);
    maximum = fmaxf(maximum, value);
  }
  maximum = warp_max(maximum);

  float sum = 0.0f;
  for (int col = lane; col < cols; col += 32) {
    const float value = load(@loads@);
    sum += expf(value - maximum);
  }
  sum = warp_sum(sum);

  for (int col = lane; col < cols; col += 32) {
    const float value = load(@loads@);
    @out@_row[col] = finish(value, maximum, sum);
  }
}

extern "C" void launch(@parameters@, int rows, int cols) {
  softmax_kernel<<<(rows + 7) / 8, 256>>>(@arguments@, rows, cols);
}
"""

_SCAN = """\
// kernels: a warp walks its row, scanning a segment by shuffles.
__global__ void scan_kernel(@parameters@, int rows, int cols) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
@row_pointers@
  float* @out@_row = @out@ + (size_t)row * cols;
  float carry = identity();
  for (int start = 0; start < cols; start += 32) {
    const int col = start + lane;
    const float total = col < cols ? load(@loads@) : identity();
    float value = total;
    for (int offset = 1; offset < 32; offset *= 2) {
      const float left = __shfl_up_sync(0xffffffffu, value, offset);
      if (lane >= offset) value = combine(left, value);
    }
    const float left = __shfl_up_sync(0xffffffffu, value, 1);
    const float before = lane == 0 ? carry : combine(carry, left);
    carry = combine(carry, __shfl_sync(0xffffffffu, value, 31));
    if (col < cols) @out@_row[col] = combine(before, total);
  }
}

extern "C" void launch(@parameters@, int rows, int cols) {
  scan_kernel<<<(rows + 7) / 8, 256>>>(@arguments@, rows, cols);
}
"""

_KERNELS = {"rows": _ROWS, "reduction": _REDUCTION, "softmax": _SOFTMAX, "scan": _SCAN}
_TITLES = {"rows": "a number for each row", "reduction": "one number of all elements", "softmax": "softmax of each row",
           "scan": "prefix results of each row"}
# Names that the kernels of this style use themselves.
_TAKEN = set("""rows cols row col n i lane total value maximum sum left carry before start offset thread threads chunk end
needed blocks joined block_totals load identity combine finish a b""".split())


class Joining:
    """What operators.py recorded of a joining operator: `kind`, its tensors, the joined dimensions, and C expressions.
    `load` is of the element {0}; `finish` of {0}, the joined value, and {count}, the number of elements (of a softmax:
    of value, maximum and sum)."""

    def __init__(self, ref, kind, x, result, dims, combine="", identity="", load="{0}", finish="{0}"):
        self.kind, self.x, self.result, self.dims = kind, x, result, dims
        self.combine, self.identity, self.load, self.finish = combine, identity, load, finish
        self.maps_before = len(ref.maps)


def styled(reference):
    """As offline_style.styled, of a problem whose only other operators are element by element."""
    (joining,) = reference.joinings
    x, result, rank = joining.x, joining.result, joining.x.rank
    last = list(range(rank - len(joining.dims), rank))
    if sorted(joining.dims) != last or not x.contiguous() or not result.contiguous():
        return None
    kind = joining.kind
    if kind == "rows" and len(joining.dims) == rank:
        kind = "reduction"
    before, after = reference.maps[:joining.maps_before], reference.maps[joining.maps_before:]
    loaded = _loaded(before, x)
    finished = _finished(after, result)
    if loaded is None or finished is None or (after and kind in ("softmax", "scan")):
        return None
    load, arrays = loaded
    inputs = [p["name"] for p in reference.importer.parameters if p["role"] == "input"]
    if sorted(arrays) != sorted(inputs) or _TAKEN & set(inputs + [reference.output_name]):
        return None
    text = _text(reference, joining, kind, joining.load.format(load), finished, inputs)
    rows = _product(x.dims[:rank - len(joining.dims)])
    cols = _product(x.dims[rank - len(joining.dims):])
    return text, ({"n": cols} if kind == "reduction" else {"rows": rows, "cols": cols}), {}


def _product(dims):
    kept = [d if re.fullmatch(r"\w+", d) else f"({d})" for d in dims if d != "1"]
    return "*".join(kept) if kept else "1"


def _loaded(maps, x):
    """The element that is joined, as an expression of the inputs' elements, and their names."""
    value, arrays, previous = None, [], None
    for _, result, operands, expression, flat in maps:
        if not flat or result.buffer.type != "float":
            return None
        words = []
        for operand in operands:
            if operand is None:
                return None
            if operand.buffer.role == "input":
                words.append(operand.buffer.name)
                arrays.append(operand.buffer.name)
            elif operand.buffer is previous:
                words.append(f"({value})")
            else:
                return None
        if previous is not None and not any(o.buffer is previous for o in operands):
            return None
        value, previous = expression.format(*words), result.buffer
    if previous is None:
        return (x.buffer.name, [x.buffer.name]) if x.buffer.role == "input" else None
    return (f"({value})", list(dict.fromkeys(arrays))) if x.buffer is previous else None


def _finished(maps, result):
    """What becomes of the joined value, as an expression of {0}; None where it is not the output."""
    value, previous = "{0}", result.buffer
    for _, written, operands, expression, flat in maps:
        if not flat or any(o is None or o.buffer is not previous for o in operands):
            return None
        # format keeps the innermost {0}, which is filled in later.
        value, previous = expression.format(*[f"({value})"] * len(operands)), written.buffer
    return value if previous.role == "output" else None


def _text(reference, joining, kind, load, finished, inputs):
    out = reference.output_name
    rows = kind != "reduction"
    count = "cols" if rows else "n"
    counted = "{count}" in joining.finish
    axes = [f"{name}[rows][cols]" for name in inputs] + [f"{out}[rows]" if kind == "rows" else f"{out}[rows][cols]"]
    lines = [f"// {reference.importer.title}: {_TITLES[kind]}."]
    lines += [f"// layout: {', '.join(axes)}"] if rows else []
    lines += [f"// schedule: {kind}{' shuffle' if rows else ''}", ""]
    lines.append(f"__device__ float load({', '.join('float ' + name for name in inputs)}) {{ return {load}; }}")
    if kind == "softmax":
        lines.append(f"__device__ float finish(float value, float maximum, float sum) {{ return {joining.finish}; }}")
    else:
        lines += ["", f"__device__ float identity() {{ return {joining.identity}; }}",
                  f"__device__ float combine(float a, float b) {{ return {joining.combine}; }}"]
    if kind in ("rows", "reduction"):
        total = finished.format(joining.finish.format("total", count=f"(float){count}"))
        lines.append(f"__device__ float finish(float total{', int ' + count if counted else ''}) {{ return {total}; }}")
    fill = {
        "parameters": ", ".join([f"const float* {name}" for name in inputs] + [f"float* {out}"]),
        "row_pointers": "\n".join(f"  const float* {name}_row = {name} + (size_t)row * cols;" for name in inputs),
        "loads": ", ".join(f"{name}_row[col]" if rows else f"{name}[i]" for name in inputs),
        "arguments": ", ".join(inputs + [out]), "out": out, "more": f", {count}" if counted else "",
    }
    return "\n".join(lines) + "\n\n" + re.sub(r"@(\w+)@", lambda m: fill[m[1]], _KERNELS[kind])
