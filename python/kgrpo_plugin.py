"""kgrpo_plugin - rewards, coders and evaluators for kgrpo in Python. One file, no dependencies, Python 3.8 or newer.

Copy it beside your script. A reward is a decorated function; its arguments after * are the options of the pipeline:

    from kgrpo_plugin import reward, run

    @reward
    def shaped(round, *, cap=8.0):
        '''The speedup over the reference, up to a cap.'''
        if not round.correct:
            return -1.0 if not round.compiled else -0.5
        return 0.3 + min(round.speedup, cap)

    run()

In the pipeline:  reward: {plugin: reward_program, options: {command: [python3, shaped.py], options: {cap: 4}}}

The host starts the script and speaks JSON-RPC 2.0 with it, an object a line (docs/protocol). print() goes to standard
error, and so into the run's log.
"""
import concurrent.futures
import difflib
import inspect
import json
import math
import os
import sys
import threading
import traceback

PROTOCOL = 1
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_MISSING = object()
_offered = {}


def _did_you_mean(name, known):
    closest = difflib.get_close_matches(name, known, 1)
    return " (did you mean %r?)" % closest[0] if closest else ""


class Record(dict):
    """A dictionary whose members can also be read as attributes: record.seconds."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            known = sorted(set(self) | {own for own in dir(type(self)) if own[0] != "_" and not hasattr(dict, own)})
            meant = _did_you_mean(name, known)
            raise AttributeError("there is no %r%s; there are: %s" % (name, meant, ", ".join(known))) from None


class UnknownMetric(LookupError):
    """Round.metric was asked for what the evaluator did not measure of a correct kernel."""


class Round(Record):
    """What a reward scores. Members: baseline, candidate, current (evaluations), answer, suggestion,
    suggestion_tokens, unchanged, round (from 0), rounds, history. Evaluations have compiled, correct, verdict, seconds,
    speedup, diagnosis, metrics and more: docs/protocol/evaluation.json. Where the coder wrote no kernel, candidate is None, and so is that round's place in
    history: test `if round.candidate:` before you read its members. The properties below are defined for every round."""

    @property
    def compiled(self):
        """False where the coder wrote no kernel."""
        return self.candidate is not None and self.candidate.compiled

    @property
    def correct(self):
        """False where the coder wrote no kernel."""
        return self.candidate is not None and self.candidate.correct

    @property
    def speedup(self):
        """Over the reference kernel; 0.0 unless the candidate is correct."""
        return self.speedup_of(self.candidate)

    @property
    def previous_speedup(self):
        """Of the kernel that the round started from."""
        return self.speedup_of(self.current)

    @property
    def best_speedup(self):
        """The greatest of the trajectory's earlier rounds; at least 1.0, the reference's."""
        return max([1.0] + [self.speedup_of(evaluation) for evaluation in self.history])

    @property
    def not_applicable(self):
        """No kernel, because the suggestion does not apply to this one."""
        return self.answer is not None and self.answer.outcome == "not_applicable"

    @property
    def unclear(self):
        """No kernel, because the suggestion names nothing that can be done."""
        return self.answer is not None and self.answer.outcome == "unclear"

    @property
    def coder_error(self):
        """No kernel, because the coder refused, was cut off, wrote no code or failed."""
        return self.answer is not None and self.answer.outcome in ("refused", "truncated", "no_code", "failed")

    @property
    def policy_error(self):
        """No kernel, because the policy writes the kernels and its completion contains none."""
        return self.answer is not None and self.answer.outcome == "no_kernel"

    def speedup_of(self, evaluation):
        """Of any evaluation, or None: 0.0 unless it is correct."""
        return evaluation.speedup if evaluation and evaluation.correct else 0.0

    def metric(self, name, default=_MISSING):
        """What the evaluator measured of the candidate: round.metric("registers"). Raises a LookupError for what it
        did not measure, unless a default is given. A kernel that is not correct has few metrics, and a round without a
        kernel none: test round.correct first, or give a default, round.metric("registers", 0.0)."""
        try:
            return self.metric_of(self.candidate, name, default)
        except UnknownMetric:
            raise
        except LookupError:
            why = "the kernel is not correct (%s)" % self.candidate.verdict if self.candidate else "the round has no candidate"
            raise LookupError("there is no metric %r: %s; test round.correct first, or give a default: metric(%r, 0.0)" % (
                name, why, name)) from None

    def metric_of(self, evaluation, name, default=_MISSING):
        """The same of any evaluation, or None: round.metric_of(round.current, "registers")."""
        metrics = evaluation.metrics if evaluation else {}
        if name in metrics:
            value = metrics[name]
            return value[0] if isinstance(value, list) else value  # [value, low, high]: with its interval
        if default is not _MISSING:
            return default
        if evaluation and evaluation.correct:
            measured = "; measured were: " + (", ".join(sorted(metrics)) or "none")
            raise UnknownMetric("there is no metric %r%s" % (name, _did_you_mean(name, metrics) or measured))
        raise LookupError("there is no metric %r: there is no correct kernel; test it first, or give a default" % name)


def example_round(speedup=1.0, compiled=True, correct=True, metrics=None, current_correct=True, outcome="ok", earlier=()):
    """A made-up round for a reward's own test, whose candidate is `speedup` times as fast as the reference. The kernel
    that it began with is the reference, or a wrong one where `current_correct` is False. `outcome`: the coder's; with
    another than "ok", such as "unclear" or "failed", it wrote no kernel. `metrics`: of correct kernels. `earlier`: the
    speedups of the trajectory's earlier kernels, 0.0 for one that is not correct."""

    def evaluation(seconds, compiled=True, correct=True):
        verdict = "correct" if correct else "wrong" if compiled else "not_compiled"
        return Record(compiled=compiled, correct=correct, verdict=verdict, seconds=seconds if correct else 0.0,
                      speedup=1e-3 / seconds if correct else 0.0, diagnosis="", metrics=Record(metrics or {} if correct else {}), remarks=[])

    reference = evaluation(1e-3)
    candidate = evaluation(1e-3 / speedup, compiled, compiled and correct) if outcome == "ok" else None
    answer = Record(outcome=outcome, source="// made up" if outcome == "ok" else "", summary="", message="", cost=0.0,
                    seconds=1.0)
    current = reference if current_correct else evaluation(0.0, correct=False)
    return Round(baseline=reference, current=current, candidate=candidate, answer=answer, unchanged=False,
                 suggestion="Use shared memory.", suggestion_tokens=5,
                 round=len(earlier), rounds=4,
                 history=[evaluation(1e-3 / s) if s else evaluation(0.0, correct=False) for s in earlier])


class NotApplicable(Exception):
    """Raised by a coder: the suggestion does not apply to this kernel."""

    outcome = "not_applicable"


class Unclear(Exception):
    """Raised by a coder: the suggestion names nothing that can be done."""

    outcome = "unclear"


class Refused(Exception):
    """Raised by a coder: the service declined to answer."""

    outcome = "refused"


def reward(function=None, *, idle=None):
    """Offers function(round, **options) -> a finite number, or a dict of parts whose sum is the score. `idle`: the same
    for a round that leaves the kernel as it is, whose candidate is None; None: the host takes 0. It takes the same
    options."""
    return _offer("reward", function, {"idle": idle})


def coder(function=None, *, concurrency=1, suggestions=()):
    """Offers function(request, **options) -> the new kernel's source, or a dict with "source" and what else the answer
    has (summary, cost, ...). It may raise NotApplicable, Unclear or Refused. `concurrency`: how many requests this
    process works on at once, each in a thread. `suggestions`: a list of what it understands, for warm starts and
    baselines that draw from it."""
    if isinstance(suggestions, str):
        raise TypeError('suggestions is a list of texts: ["..."]')
    return _offer("coder", function, {"concurrency": concurrency, "suggestions": list(suggestions)})


def evaluator(function=None, *, problem=None, concurrency=1):
    """Offers function(kernel, **options) -> an evaluation: a dict with "correct" and "seconds". kernel has directory,
    source, seed and thorough. `problem`: function(directory) -> a dict with "name" and "source" (default: the folder's
    name and its reference.cu)."""
    return _offer("evaluator", function, {"problem": problem or _problem_of_folder, "concurrency": concurrency})


def _offer(role, function, settings):
    if function is None:
        return lambda function: _offer(role, function, settings)
    _refuse_options_before_star(function)
    if settings.get("idle") is not None:
        _refuse_other_options(function, settings["idle"])
    _offered[role] = (function, settings)
    return function


def _problem_of_folder(directory):
    with open(os.path.join(directory, "reference.cu"), encoding="utf-8") as file:
        return {"name": os.path.basename(os.path.normpath(directory)), "source": file.read()}


def _name(function):
    return getattr(function, "__name__", "the function")


def _refuse_options_before_star(function):
    signature = inspect.signature(function)
    first, rest = list(signature.parameters.values())[:1], list(signature.parameters.values())[1:]
    if any(parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) for parameter in rest):
        options = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in rest
                   if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)]
        raise TypeError("%s(): write its options after *: def %s%s" % (
            _name(function), _name(function), signature.replace(parameters=first + options)))


def _refuse_other_options(function, idle):
    """The host knows the options of `function` only, and gives all of them to both."""
    _refuse_options_before_star(idle)
    options, others = options_schema(function)["properties"], options_schema(idle)["properties"]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(idle).parameters.values())
    for lacking, missing in ((idle, [] if takes_any else [name for name in options if name not in others]),
                             (function, [name for name in others if name not in options])):
        if missing:
            raise TypeError("%s() and %s() must take the same options: %s() lacks %s" % (
                _name(function), _name(idle), _name(lacking), ", ".join(missing)))


def options_schema(function):
    """JSON Schema of a function's keyword-only arguments. One without a default must be given."""
    properties, required = {}, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        has_default = parameter.default is not parameter.empty
        annotated = _TYPES.get(parameter.annotation)
        kind = annotated or (_TYPES.get(type(parameter.default)) if has_default else None)
        described = {"description": "Argument %s of %s." % (parameter.name, _name(function))}
        if kind is not None:
            described["type"] = kind
        if has_default:
            described["default"] = parameter.default
        else:
            required.append(parameter.name)
        properties[parameter.name] = described
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return dict(schema, required=required) if required else schema


def _unexpected(function, value, expected):
    code = getattr(inspect.unwrap(function), "__code__", None)
    place = " (%s:%d)" % (os.path.basename(code.co_filename), code.co_firstlineno) if code else ""
    return TypeError("%s() returned %.200r%s: expected %s" % (_name(function), value, place, expected))


def _is_finite(value):
    try:
        return not isinstance(value, (str, bytes)) and math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False


def _scored(function, round, options):
    value = function(round, **options)
    parts = value if isinstance(value, dict) else {"score": value}
    if not all(_is_finite(part) for part in parts.values()) or not _is_finite(sum(map(float, parts.values()))):
        raise _unexpected(function, value, "a finite number or a dict of them")
    parts = {name: float(part) for name, part in parts.items()}
    return {"score": sum(parts.values()), "parts": parts} if isinstance(value, dict) else {"score": parts["score"]}


def _implemented(function, request, options):
    try:
        answer = function(request, **options)
    except (NotApplicable, Unclear, Refused) as reason:
        return {"outcome": reason.outcome, "message": str(reason)}
    if isinstance(answer, str):
        answer = {"source": answer}
    if not isinstance(answer, dict):
        raise _unexpected(function, answer, "the kernel's source or a dict with it")
    return dict({"outcome": "ok"}, **answer)


def _answer(role, method, params, options):
    function, settings = _offered[role]
    if role == "reward" and method in ("score", "idle"):
        return _scored(function if method == "score" else settings["idle"], Round(params), options)
    if role == "coder" and method == "implement":
        return _implemented(function, params, options)
    if role == "evaluator":
        if method == "open_problem":
            return settings["problem"](params.directory)
        if method == "evaluate":
            evaluation = function(params, **options)
            if not isinstance(evaluation, dict):
                raise _unexpected(function, evaluation, 'a dict with "correct" and "seconds"')
            return evaluation
    raise ValueError("there is no method %r for a %s" % (method, role))


def _without_kit(error):
    """The traceback of an exception, without the frames of this file."""
    told = level = traceback.TracebackException.from_exception(error)
    while level is not None:
        level.stack[:] = [frame for frame in level.stack if frame.filename != __file__]
        level = level.__cause__ or level.__context__
    return "".join(told.format() if told.stack else told.format_exception_only())


def _absent(error, request):
    """What is None in the round, where the exception speaks of None."""
    if request.method not in ("score", "idle") or "NoneType" not in str(error):
        return ""
    if request.params.candidate is None:
        return "; in this round candidate is None%s: test `if round.candidate:` first" % (
            ", as the coder wrote no kernel" if request.method == "score" else "")
    return "; round.history has None for a round in which the coder wrote no kernel" if request.params.history else ""


def _place(error):
    """Where in the author's code an exception was raised: " (reward.py:6)"."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    return " (%s:%d)" % (os.path.basename(frames[-1].filename), frames[-1].lineno) if frames else ""


class _Server:
    def __init__(self, answers):
        self.answers, self.lock, self.role, self.options, self.told = answers, threading.Lock(), None, {}, set()

    def send(self, message):
        line = json.dumps(message, separators=(",", ":"), allow_nan=False) + "\n"
        with self.lock:
            self.answers.write(line)
            self.answers.flush()

    def tell(self, error):
        """Prints the traceback once: a mistake in a script comes with every request."""
        text = _without_kit(error)
        if text not in self.told:
            self.told.add(text)
            sys.stderr.write(text)
            sys.stderr.flush()

    def hello(self, params):
        self.role = params.role
        if self.role not in _offered:
            raise ValueError("this script offers %s, no %s" % (", ".join(_offered), self.role) if _offered else
                             "no function of this script is decorated with @%s" % self.role)
        function, settings = _offered[self.role]
        return {
            "protocol": PROTOCOL,
            "name": "function " + _name(function),
            "version": str(getattr(function, "__globals__", {}).get("__version__", "")),
            "roles": list(_offered),
            "options_schema": options_schema(function),
            "concurrency": settings.get("concurrency", 1),
            "idle": settings.get("idle") is not None,
        }

    def handle(self, request):
        try:
            if request.method == "initialize":
                result = self.hello(request.params)
            elif request.method == "configure":
                self.options = request.params.options
                suggestions = _offered[self.role][1].get("suggestions")
                result = {"suggestions": suggestions} if suggestions else {}
            else:
                result = _answer(self.role, request.method, request.params, self.options)
            self.send({"jsonrpc": "2.0", "id": request.id, "result": result})
        except (Exception, SystemExit) as error:  # reported to the host, which decides whether the run goes on
            self.tell(error)
            message = "%s: %s%s%s" % (type(error).__name__, error, _place(error), _absent(error, request))
            # Invalid params, since the made-up rounds of `plugins validate` lack the evaluator's metrics.
            code = -32602 if isinstance(error, UnknownMetric) else -32000
            self.send({"jsonrpc": "2.0", "id": request.id, "error": {"code": code, "message": message}})

    def serve(self, requests):
        pool = None
        for line in requests:
            request = json.loads(line, object_hook=Record)
            if "id" not in request:
                continue  # a notification, such as cancel: a cancelled request may still be answered
            concurrency = _offered[self.role][1].get("concurrency", 1) if self.role else 1
            if concurrency == 1 or request.method in ("initialize", "configure"):
                self.handle(request)
                continue
            pool = pool or concurrent.futures.ThreadPoolExecutor(concurrency)
            pool.submit(self.handle, request)
        if pool:
            pool.shutdown(wait=False)


def run():
    """Serves what was decorated until the host closes standard input. The last line of a script."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # print() and C code write to standard error: standard output is for answers only
    sys.stdout.reconfigure(line_buffering=True)  # so that lines reach the log at once and survive a kill
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _Server(answers).serve(requests)
