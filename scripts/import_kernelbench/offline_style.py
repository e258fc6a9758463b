"""References in the style that coder_offline reads (docs/coder_offline.md), where the whole problem is of one of its kinds:
a chain of element by element operators ("map"), one matrix product ("matmul"), or what offline_rows.py writes. Used by
reference.py.
"""
import re

import offline_rows

# The kernel of one stage: a pass over the elements.
_STAGE = """\
__global__ void {name}_kernel({parameters}, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {{
    {output}[i] = stage_{name}({loads});
  }}
}}
"""

_MATMUL = """\
// {title}.
// layout: {a}[m][k], {b}{b_layout}, {out}[m][n]
// schedule: matmul coalesce

// kernels: a thread computes one output, neighbouring threads in neighbouring columns.
__global__ void matmul_kernel(const float* {a}, const float* {b}, float* {out}, int m, int n, int k) {{
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int col = blockIdx.x * 16 + threadIdx.x;
  if (row >= m || col >= n) return;
  float total = 0.0f;
  for (int i = 0; i < k; ++i) {{
    total += {a}[(size_t)row * k + i] * {b}[{b_index}];
  }}
  {out}[(size_t)row * n + col] = total;
}}

extern "C" void launch(const float* {a}, const float* {b}, float* {out}, int m, int n, int k) {{
  const dim3 blocks((n + 15) / 16, (m + 15) / 16);
  matmul_kernel<<<blocks, dim3(16, 16)>>>({a}, {b}, {out}, m, n, k);
}}
"""

LARGEST = 2**31 - 2**16  # elements: these kernels have int indices


def styled(reference):
    """(text, scalars, names) of a reference in the style; None where the problem is of no kind. `scalars`: name ->
    expression; `names`: what the style calls parameters, by their own names."""
    launches = [step for step in reference.steps if step[0] == "launch"]
    if reference.importer.numbers or any(b.type != "float" for b in reference.buffers.values() if b.role != "own"):
        return None
    if launches and len(reference.maps) == len(launches):
        return _map(reference)
    if len(launches) == 1 and len(reference.products) == 1:
        return _matmul(reference)
    if len(reference.joinings) == 1 and len(launches) == len(reference.maps) + 1:
        return offline_rows.styled(reference) if _countable(reference.joinings[0].x) else None
    return None


def _countable(tensor):
    return tensor.largest() <= LARGEST


def _map(reference):
    stages, names, previous = [], {}, None
    for name, result, operands, expression, flat in reference.maps:
        if not flat or result.largest() > LARGEST or result.buffer.type != "float":
            return None
        words = []
        for operand in operands:
            if operand.buffer.role == "input":
                words.append((operand.buffer.name, f"{operand.buffer.name}[i]"))
            elif previous is not None and operand.buffer is previous:
                words.append(("value", None))
            else:
                return None
        if previous is not None and ("value", None) not in words:
            return None
        name = re.sub(r"\W", "", name) or "stage"
        names[name] = names.get(name, 0) + 1
        stages.append((name + (str(names[name]) if names[name] > 1 else ""), words, expression))
        previous = result.buffer
    if previous.role != "output":
        return None
    return _map_text(reference, stages), {"n": reference.maps[-1][1].numel()}, {}


def _map_text(reference, stages):
    out = reference.output_name
    lines = [f"// {reference.importer.title}: element by element.", "// schedule: map", ""]
    kernels, calls = [], []
    for name, words, expression in stages:
        unique = list(dict.fromkeys(words))
        parameters = ", ".join(f"float {word}" for word, _ in unique)
        lines += [f"__device__ float stage_{name}({parameters}) {{ return {expression.format(*(w for w, _ in words))}; }}", ""]
        arrays = [word for word, load in unique if load]
        kernels.append(_STAGE.format(name=name, output=out, loads=", ".join(load or f"{out}[i]" for _, load in unique),
                                     parameters=", ".join([f"const float* {a}" for a in arrays] + [f"float* {out}"])))
        calls.append(f"  {name}_kernel<<<blocks, 256>>>({', '.join(arrays + [out, 'n'])});")
    lines.append("// kernels: a pass over the elements for each stage, an element a thread.")
    inputs = [p["name"] for p in reference.importer.parameters if p["role"] == "input"]
    signature = ", ".join([f"const float* {name}" for name in inputs] + [f"float* {out}", "int n"])
    return ("\n".join(lines) + "\n" + "\n".join(kernels) + f"\nextern \"C\" void launch({signature}) {{\n" +
            "  const int blocks = (n + 255) / 256;\n" + "\n".join(calls) + "\n}\n")


def _matmul(reference):
    a, b, bias, result, scale = reference.products[0]
    plain = bias is None and scale == 1 and result.buffer.role == "output" and result.contiguous() and a.contiguous()
    if not plain or a.rank != 2 or a.buffer is b.buffer or max(t.largest() for t in (a, b, result)) > LARGEST:
        return None
    if [p["name"] for p in reference.importer.parameters[:2]] != [a.buffer.name, b.buffer.name]:
        return None
    if b.contiguous():
        layout, index = "[k][n]", "(size_t)i * n + col"
    elif b.strides()[0] == "1" and b.strides()[1] == b.dims[0] and len(b.buffer.base[0].shape) == 2:
        layout, index = "[n][k]", "(size_t)col * k + i"
    else:
        return None
    if any(p["distribution"] == "torchscript" for p in reference.importer.parameters[:2]):
        return None  # the tapes refer to parameters by name
    text = _MATMUL.format(title=reference.importer.title, a="a", b="b", out=result.buffer.name, b_layout=layout,
                          b_index=index)
    return (text, {"m": result.dims[0], "n": result.dims[1], "k": a.dims[1]},
            {a.buffer.name: "a", b.buffer.name: "b"})
