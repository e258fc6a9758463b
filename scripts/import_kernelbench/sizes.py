"""Small sizes at which a problem means the same: for correctness, and for machines without a GPU.

A size is a value for every slot of the source (source_file.py). Candidates are tried on PyTorch's "meta" device, which
computes shapes and nothing else, so that a problem of gigabytes costs milliseconds.
"""
import torch
from torch.utils.flop_counter import FlopCounterMode

from record import Recorder, views

PRIMES = (11, 13, 7, 17, 19, 5, 23, 29, 31, 37)


class Outcome:
    """What a run on the meta device showed: which operators, of what kind the output is, and the work."""

    def __init__(self, operators, rank, dtype, parameters, cost):
        self.operators, self.rank, self.dtype, self.parameters, self.cost = operators, rank, dtype, parameters, cost

    def same(self, other):
        return (self.operators, self.rank, self.dtype, self.parameters) == (other.operators, other.rank, other.dtype,
                                                                           other.parameters)


def run_on(source, values, device):
    """An Outcome; raises what the problem raises."""
    with torch.device(device), torch.no_grad():
        module = source.module(values)
        model = module.Model(*module.get_init_inputs())
        inputs = module.get_inputs()
        with FlopCounterMode(display=False) as flops, Recorder() as recorder:
            out = model(*inputs)
    # `empty` is allowed: batch normalisation creates an empty tensor.
    if any(view.numel() == 0 for call in recorder.calls if call.operator != "empty" for view in views(call.results)):
        raise ValueError("a result without elements")
    parameters = tuple(p.dim() for p in model.parameters())
    moved = sum(view.numel() for call in recorder.calls for view in views(call.results))
    moved += sum(p.numel() for p in model.parameters())
    return Outcome(frozenset(call.operator for call in recorder.calls), out.dim(), out.dtype, parameters,
                   flops.get_total_flops() + 10 * moved)


def _candidates(value, target, taken):
    """Values to try in a slot that holds `value`, best first: near `target`, odd and unlike others where possible."""
    primes = [p for p in PRIMES if p <= 2 * target and p < value and target <= PRIMES[-1]]
    primes.sort(key=lambda p: (p in taken, abs(p - target)))
    halves, half = [], value
    while half > 2:
        if half % 2:
            break
        half //= 2
        if half <= 4 * target:
            halves.append(half)
    divisors = [d for d in range(2, min(value, 4 * target, 512)) if value % d == 0]
    powers = [p for p in (2**n for n in range(1, 15)) if p < value]
    near = sorted(set(halves + divisors + powers), key=lambda d: (d in taken, abs(d - target)))
    larger = sorted((d for d in set(halves + divisors + powers) if d > target))
    chosen = []
    for candidate in primes[:2] + near[:4] + larger[:3]:
        if candidate not in chosen:
            chosen.append(candidate)
    return chosen


class Shrinker:
    """Finds sizes for one problem. `device` is "meta", or "cpu" where the problem does not run on meta."""

    def __init__(self, source, deadline):
        self.source, self.deadline = source, deadline
        self.device = "meta"
        self.original = None
        try:
            self.original = run_on(source, source.original(), "meta")
        except Exception:  # the problem's own code may fail in any way if tensors have no values
            self.device = "cpu"

    def works(self, values):
        """An Outcome; None where the size does not work, or means something else."""
        try:
            outcome = run_on(self.source, values, self.device)
        except Exception:
            return None
        if self.original is not None and not outcome.same(self.original):
            return None
        return outcome

    def _at_once(self, target, salt):
        """All slots at once, which does for most problems."""
        values, taken = {}, set()
        for i, slot in enumerate(self.source.slots):
            options = _candidates(slot.value, target + (i + salt) % 3, taken)
            values[slot.name] = options[0] if options else slot.value
            taken.add(values[slot.name])
        return values

    def _alike(self, target, salt):
        """Equal numbers stay equal: for dimensions that must agree though nothing in the source says so."""
        chosen = {}
        for i, value in enumerate(sorted({slot.value for slot in self.source.slots})):
            options = _candidates(value, target + (i + salt) % 3, set(chosen.values()))
            chosen[value] = options[0] if options else value
        return {slot.name: chosen[slot.value] for slot in self.source.slots}

    def _batch_only(self, target, salt):
        """For what cannot be tried without computing it, and has sizes that belong together."""
        values = self.source.original()
        for name in values:
            if "batch" in name.lower():
                values[name] = 2 + salt
        return values

    def _one_by_one(self, target, salt):
        """Slot by slot from the largest, each as small as the others let it be."""
        values, taken = self.source.original(), set()
        for i, slot in enumerate(sorted(self.source.slots, key=lambda s: -s.value)):
            for candidate in _candidates(slot.value, target + (i + salt) % 3, taken):
                if self.deadline():
                    return values
                if self.works({**values, slot.name: candidate}) is not None:
                    values[slot.name] = candidate
                    taken.add(candidate)
                    break
        return values

    def find(self, target, budget, salt, avoid=()):
        """A size around `target` whose work is within `budget` where that can be reached; None where nothing works."""
        best = None
        attempts = (self._at_once, self._alike, self._one_by_one)
        if self.device != "meta":
            attempts = (self._at_once, self._alike, self._batch_only)
        while target >= 2:
            for attempt in attempts:
                values = attempt(target, salt)
                if values in avoid:
                    continue
                outcome = self.works(values)
                if outcome is not None:
                    if best is None or outcome.cost < best[1].cost:
                        best = (values, outcome)
                    if outcome.cost <= budget:
                        return best
                    break
            if self.deadline():
                break
            target = target * 2 // 3
        return best
