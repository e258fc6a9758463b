"""One problem at one size: its model and inputs from a seed, what was recorded on the way, and its oracle.

Used by one_problem.py.
"""
import copy

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.stateless import _reparametrize_module

from record import Recorder
from source_file import BadSource, argument_names

SEED = 42  # KernelBench's own

RANDOM = {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "bernoulli_",
          "native_dropout", "normal_", "uniform_", "exponential_", "multinomial", "random_", "normal", "rrelu_with_noise"}
_NORMS = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.instancenorm._InstanceNorm)


class Refused(Exception):
    """The problem cannot be judged; the text says why."""


def _running_statistics(model):
    """Names of buffers that training updates and its output does not depend on."""
    names = set()
    for prefix, module in model.named_modules():
        if isinstance(module, _NORMS):
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                names.add(f"{prefix}.{name}" if prefix else name)
    return names


class Traced:
    """Model, inputs and recorded calls at `values`. Raises what the problem's own code raises."""

    def __init__(self, source, values, device="cpu"):
        self.values = values
        with torch.device(device), torch.no_grad():
            self.module = source.module(values)
            torch.manual_seed(SEED)
            initial = self.module.get_init_inputs()
            torch.manual_seed(SEED)
            with Recorder() as recorder:
                self.model = self.module.Model(*initial)
            self.init_calls = recorder.calls
            self.draw(SEED)
        if not isinstance(self.inputs, (list, tuple)):
            raise BadSource("get_inputs returns no list")
        statistics = _running_statistics(self.model)
        self.weights = {name: tensor for name, tensor in self.model.named_parameters()}
        self.weights.update((name, tensor) for name, tensor in self.model.named_buffers() if name not in statistics)
        self.device = device

    def draw(self, seed):
        """Draws the inputs again."""
        torch.manual_seed(seed)
        with Recorder() as recorder:
            self.inputs = self.module.get_inputs()
        self.input_calls = recorder.calls

    def tensors(self):
        """Inputs that are tensors, by their names in forward."""
        names = argument_names(self.model)
        return {name: value for name, value in zip(names, self.inputs) if isinstance(value, torch.Tensor)}

    def numbers(self):
        """Inputs that are numbers, likewise."""
        names = argument_names(self.model)
        return {name: value for name, value in zip(names, self.inputs) if not isinstance(value, torch.Tensor)}

    def arguments(self, dtype):
        """Inputs and weights as oracle's function takes them, copied, in `dtype`."""
        tensors = list(self.tensors().values()) + [tensor.detach() for tensor in self.weights.values()]
        return [as_dtype(tensor, dtype).clone() for tensor in tensors]

    def run(self):
        """forward's output, recorded in self.calls."""
        # Recorded as plain operators: attention becomes products and softmax, recurrent layers become their steps.
        with torch.device(self.device), torch.no_grad(), sdpa_kernel(SDPBackend.MATH), \
                torch.backends.mkldnn.flags(enabled=False), Recorder() as recorder:
            out = self.model(*self.inputs)
        self.calls = recorder.calls
        if not isinstance(out, torch.Tensor):
            raise Refused(f"forward returns a {type(out).__name__}, not one tensor")
        return out

    def oracle(self, dtype):
        """forward as a function of inputs and weights, in this order: a ScriptFunction of `dtype`. Moves the model to
        `dtype`; nothing else of this object may be used afterwards."""
        model = self.model.to(dtype)
        names = list(self.weights)
        inputs = [as_dtype(value, dtype) for value in self.inputs]
        places = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        weights = [state[name].detach() for name in names]

        def function(*tensors):
            arguments = list(inputs)
            for place, tensor in zip(places, tensors):
                arguments[place] = tensor
            with _reparametrize_module(model, dict(zip(names, tensors[len(places):]))):
                return model(*arguments)

        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            with torch.no_grad():
                example = tuple(inputs[place] for place in places) + tuple(weights)
                return torch.jit.trace(function, copy.deepcopy(example), check_trace=False)
        finally:
            torch.set_default_dtype(before)


def as_dtype(value, dtype):
    """A floating tensor in `dtype`; anything else as it is."""
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.to(dtype) if floating else value
