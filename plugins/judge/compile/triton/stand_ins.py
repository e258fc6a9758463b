"""What a Triton candidate sees in place of PyTorch: tensors that know dtype, shape and strides and have no values, and a module
`torch` of such names. Arithmetic on tensors is refused by name. Used by record_triton.py."""
import math
import sys
import types


class Unsupported(Exception):
    pass


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


def torch_module(device, capability):
    """Puts the stand-ins into sys.modules. `device`: as in the request of record_triton.py; `capability`: (major, minor)."""
    torch = Torch("torch")
    torch.__dict__.update(DTYPES, Tensor=Tensor, dtype=Dtype, half=DTYPES["float16"], float=DTYPES["float32"], double=DTYPES["float64"],
                          long=DTYPES["int64"], int=DTYPES["int32"], __version__="0", __path__=[])
    index = lambda *_: 0
    properties = types.SimpleNamespace(multi_processor_count=device["multiprocessors"], major=capability[0], minor=capability[1], total_memory=80 << 30,
                                       warp_size=32, name=device["name"], shared_memory_per_block_optin=device["shared_bytes"])
    torch.cuda = Torch("torch.cuda")
    torch.cuda.__dict__.update(current_device=index, is_available=lambda: True, get_device_properties=lambda *_: properties,
                               get_device_capability=lambda *_: capability, current_stream=lambda *_: types.SimpleNamespace(cuda_stream=0),
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
