"""A problem's Python source: the whole numbers that set its sizes, and the module that other numbers make of it.

Used by sizes.py, which looks for small sizes, and by one_problem.py.
"""
import ast
import inspect
import operator
import sys
import types

KEPT = 8  # numbers up to this are kernel sizes, strides or groups and are not changed

_OPERATORS = {ast.Mult: operator.mul, ast.Add: operator.add, ast.Sub: operator.sub, ast.FloorDiv: operator.floordiv}


class BadSource(Exception):
    """The file is no problem in KernelBench's form; the text says why."""


class Slot:
    """A whole number in the source that may be replaced. `name` is the module's word for it, or made up."""

    def __init__(self, name, value, node):
        self.name, self.value, self.node = name, value, node


def _whole(node):
    """The value of an expression of whole numbers alone, or None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _whole(node.left), _whole(node.right)
        if left is None or right is None or (isinstance(node.op, ast.FloorDiv) and right == 0):
            return None
        return _OPERATORS[type(node.op)](left, right)
    return None


class _Replace(ast.NodeTransformer):
    def __init__(self, replacements):
        self.replacements = replacements

    def visit(self, node):
        if id(node) in self.replacements:
            return ast.copy_location(ast.Constant(self.replacements[id(node)]), node)
        return self.generic_visit(node)


class SourceFile:
    """`text` as read from `path`. Raises BadSource where it is no Python or lacks what a problem has."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            raise BadSource(f"not Python: {error}") from None
        defined = {node.name for node in self.tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if name not in defined:
                raise BadSource(f"defines no {name}")
        self.slots = []
        self._find_slots()

    def _add(self, name, node):
        value = _whole(node)
        if value is not None and value > KEPT:
            taken = {slot.name for slot in self.slots}
            while name in taken:
                name += "_"
            self.slots.append(Slot(name, value, node))

    def _find_slots(self):
        for statement in self.tree.body:
            if isinstance(statement, ast.Assign):  # of `height = width = 128` the first name stands for both
                self._find_in_assignment(statement.targets[0], statement.value)
            elif isinstance(statement, ast.FunctionDef) and statement.name in ("get_inputs", "get_init_inputs"):
                self._find_in_function(statement)

    def _find_in_assignment(self, target, value):
        sequence = isinstance(value, (ast.Tuple, ast.List))
        if isinstance(target, ast.Name) and not sequence:
            self._add(target.id, value)
        elif isinstance(target, ast.Name):
            for i, item in enumerate(value.elts):
                self._add(f"{target.id}_{i}", item)
        elif isinstance(target, ast.Tuple) and sequence:
            for name, item in zip(target.elts, value.elts):
                if isinstance(name, ast.Name):
                    self._add(name.id, item)

    def _find_in_function(self, function):
        names = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                names[id(node.value)] = node.targets[0].id
        for node in ast.walk(function):
            if isinstance(node, ast.Constant) and type(node.value) is int:
                self._add(names.get(id(node), f"size_{len(self.slots)}"), node)

    def original(self):
        """The values of all slots as the file has them."""
        return {slot.name: slot.value for slot in self.slots}

    def module(self, values):
        """The module that the source is with these values. Raises what its statements raise."""
        replaced = {id(slot.node): values[slot.name] for slot in self.slots if values[slot.name] != slot.value}
        # A fresh tree each time: the transformer changes it in place.
        tree = self.tree
        if replaced:
            fresh = SourceFile(self.path, self.text)
            by_name = {slot.name: slot for slot in fresh.slots}
            tree = _Replace({id(by_name[slot.name].node): values[slot.name] for slot in self.slots}).visit(fresh.tree)
        module = types.ModuleType("problem")
        module.__file__ = self.path
        sys.modules["problem"] = module
        exec(compile(ast.fix_missing_locations(tree), self.path, "exec"), module.__dict__)
        return module


def argument_names(model):
    """The names of forward's arguments, in order."""
    return [name for name in inspect.signature(model.forward).parameters]
