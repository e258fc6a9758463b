"""Writes a number that depends on a problem's size as an expression over its symbols, from its values at several sizes.

    symbols = Symbols({"N": (5, 7, 4096), "M": (3, 11, 1024)})
    symbols.express((15, 77, 4194304))    "M*N"

A number that no simple expression gives becomes a symbol of its own. Used by problem_yaml.py and reference.py; the text
means the same in problem.yaml and in C.
"""
import itertools

MANY_SYMBOLS = 24


class Unknown(Exception):
    """A number that no expression gives, and whose value is not known at every size."""


class Symbols:
    """`values`: name -> its value at each size, in one order for all. Numbers may be known at the first sizes alone."""

    def __init__(self, values):
        self.values = dict(values)
        self.count = len(next(iter(self.values.values()))) if self.values else 0
        self.used = set()
        self._monomials = None
        self._memory = {}

    def _all_monomials(self):
        if self._monomials is None:
            names = sorted(self.values)
            self._monomials = []
            # With many symbols, as in a network, there would be too many products of three.
            for degree in (1, 2, 3) if len(names) <= MANY_SYMBOLS else (1, 2):
                for chosen in itertools.combinations_with_replacement(names, degree):
                    product = [1] * self.count
                    for name in chosen:
                        product = [p * v for p, v in zip(product, self.values[name])]
                    if len(set(product)) > 1:
                        self._monomials.append((chosen, product))
        return self._monomials

    def express(self, numbers, hint="size"):
        """The expression's text; `numbers` are whole. `hint`: the name of the symbol where there has to be a new one."""
        numbers = tuple(int(n) for n in numbers)
        if numbers not in self._memory:
            self._memory[numbers] = self._search(numbers) or self._new_symbol(numbers, hint)
        text, names = self._memory[numbers]
        self.used |= set(names)
        return text

    def _new_symbol(self, numbers, hint):
        if len(numbers) < self.count:
            raise Unknown(f"a dimension that is {', '.join(map(str, numbers))} at the sizes tried")
        name, n = hint, 1
        while name in self.values:
            n += 1
            name = f"{hint}_{n}"
        self.values[name] = numbers
        self._monomials = None
        return name, (name,)

    def _search(self, numbers):
        if len(set(numbers)) == 1:
            return str(numbers[0]), ()
        for chosen, product in self._all_monomials():
            if tuple(product[:len(numbers)]) == numbers:
                return "*".join(chosen), chosen
        best = None
        for chosen, product in self._all_monomials():
            for found in (_affine(chosen, product, numbers), _quotient(chosen, product, numbers)):
                if found is not None and (best is None or found[0] < best[0]):
                    best = found
        if best is None and len(self.values) > 1:
            best = self._two(numbers)
        return None if best is None else best[1:]

    def _two(self, numbers):
        """a*x + b*y + c of two symbols, with small whole numbers."""
        for x, y in itertools.combinations(sorted(self.values), 2):
            for a, b in itertools.product((1, 2, 3, 4), (1, -1, 2, 3, 4)):
                rest = {n - a * u - b * v for n, u, v in zip(numbers, self.values[x], self.values[y])}
                if len(rest) == 1 and abs(next(iter(rest))) <= 8:
                    c = next(iter(rest))
                    text = f"{_times(a, x)} {'-' if b < 0 else '+'} {_times(abs(b), y)}" + (_plus(c) if c else "")
                    return 9, text, (x, y)
        return None


def _times(factor, text):
    return text if factor == 1 else f"{factor}*{text}"


def _plus(constant):
    return f" {'+' if constant > 0 else '-'} {abs(constant)}"


def _affine(chosen, product, numbers):
    """(cost, text, symbols) of a*product + b, or None."""
    pairs = [(i, j) for i in range(len(numbers)) for j in range(i) if product[i] != product[j]]
    if not pairs:
        return None
    i, j = pairs[0]
    a, remainder = divmod(numbers[i] - numbers[j], product[i] - product[j])
    if remainder or not 1 <= a <= 4096:
        return None
    b = numbers[i] - a * product[i]
    if abs(b) > 256 or any(a * p + b != n for p, n in zip(product, numbers)):
        return None
    text = _times(a, "*".join(chosen)) + (_plus(b) if b else "")
    return len(chosen) + (abs(b) > 0) + (a > 1), text, chosen


def _quotient(chosen, product, numbers):
    """(cost, text, symbols) of (product + b)/c + d, rounded down; or None."""
    for c in (2, 3, 4, 5, 6, 8):
        for d in (0, 1):
            first = c * (numbers[0] - d) - product[0]  # the first size restricts b to first .. first + c - 1
            for b in range(max(-12, first), min(12, first + c - 1) + 1):
                if all((p + b) // c + d == n and p + b >= 0 for p, n in zip(product, numbers)):
                    inner = "*".join(chosen) + (_plus(b) if b else "")
                    text = (f"({inner})/{c}" if b or len(chosen) > 1 else f"{inner}/{c}") + (_plus(d) if d else "")
                    return 2 + len(chosen) + (b != 0) + (d != 0), text, chosen
    return None
