"""kgrpo_plugin - rewards, coders and evaluators for kgrpo in Python. One file, no dependencies, Python 3.8 or newer.

Copy it beside your script. A reward is a decorated function; its keyword arguments are the options of the pipeline:

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
import inspect
import json
import os
import sys
import threading
import traceback

PROTOCOL = 1
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_offered = {}


class Record(dict):
    """A dictionary whose members can also be read as attributes: record.seconds."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError("there is no %r; there are: %s" % (name, ", ".join(sorted(self)))) from None


class Round(Record):
    """What a reward scores. Members: baseline, candidate, current (evaluations; candidate is None where the coder wrote
    no kernel), answer, unchanged, round (from 0), rounds, history. Evaluations have compiled, correct, verdict, seconds,
    diagnosis, metrics and more: docs/protocol/evaluation.json."""

    @property
    def compiled(self):
        return self.candidate is not None and self.candidate.compiled

    @property
    def correct(self):
        return self.candidate is not None and self.candidate.correct

    @property
    def speedup(self):
        """Over the reference kernel; 0.0 unless the candidate is correct."""
        return self.speedup_of(self.candidate)

    @property
    def previous_speedup(self):
        """Of the kernel that the round started from."""
        return self.speedup_of(self.current)

    def speedup_of(self, evaluation):
        return self.baseline.seconds / evaluation.seconds if evaluation and evaluation.correct else 0.0

    def metric(self, name, default=0.0):
        """What the evaluator measured of the candidate: round.metric("registers")."""
        return self.candidate.metrics.get(name, default) if self.candidate else default


def example_round(speedup=1.0, compiled=True, correct=True, metrics=None, current_correct=True):
    """A made-up round for a reward's own test, whose candidate is `speedup` times as fast as the reference. The kernel
    that it began with is the reference, or a wrong one where `current_correct` is False."""

    def evaluation(seconds, compiled=True, correct=True):
        verdict = "correct" if correct else "wrong" if compiled else "not_compiled"
        return Record(compiled=compiled, correct=correct, verdict=verdict, seconds=seconds if correct else 0.0,
                      diagnosis="", metrics=Record(metrics or {}), remarks=[])

    reference = evaluation(1e-3)
    candidate = evaluation(1e-3 / speedup, compiled, compiled and correct)
    current = reference if current_correct else evaluation(0.0, correct=False)
    return Round(baseline=reference, current=current, candidate=candidate, answer=None, unchanged=False, round=0,
                 rounds=4, history=[])


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
    """Offers function(round, **options) -> a number, or a dict of parts whose sum is the score. `idle`: the same for a
    round that leaves the kernel as it is; None: the host takes 0."""
    return _offer("reward", function, {"idle": idle})


def coder(function=None, *, concurrency=1, suggestions=()):
    """Offers function(request, **options) -> the new kernel's source, or a dict with "source" and what else the answer
    has (summary, cost, ...). It may raise NotApplicable, Unclear or Refused. `concurrency`: how many requests this
    process works on at once, each in a thread. `suggestions`: a list of what it understands, for warm starts and
    baselines that draw from it."""
    return _offer("coder", function, {"concurrency": concurrency, "suggestions": list(suggestions)})


def evaluator(function=None, *, problem=None, concurrency=1):
    """Offers function(kernel, **options) -> an evaluation: a dict with "correct" and "seconds". kernel has directory,
    source, seed and thorough. `problem`: function(directory) -> a dict with "name" and "source" (default: the folder's
    name and its reference.cu)."""
    return _offer("evaluator", function, {"problem": problem or _problem_of_folder, "concurrency": concurrency})


def _offer(role, function, settings):
    if function is None:
        return lambda function: _offer(role, function, settings)
    _offered[role] = (function, settings)
    return function


def _problem_of_folder(directory):
    with open(os.path.join(directory, "reference.cu"), encoding="utf-8") as file:
        return {"name": os.path.basename(os.path.normpath(directory)), "source": file.read()}


def options_schema(function):
    """JSON Schema of a function's keyword-only arguments. One without a default must be given."""
    properties, required = {}, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        has_default = parameter.default is not parameter.empty
        annotated = _TYPES.get(parameter.annotation)
        kind = annotated or (_TYPES.get(type(parameter.default)) if has_default else None)
        described = {"description": "Argument %s of %s." % (parameter.name, function.__name__)}
        if kind is not None:
            described["type"] = kind
        if has_default:
            described["default"] = parameter.default
        else:
            required.append(parameter.name)
        properties[parameter.name] = described
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return dict(schema, required=required) if required else schema


def _scored(value):
    if isinstance(value, dict):
        parts = {name: float(part) for name, part in value.items()}
        return {"score": sum(parts.values()), "parts": parts}
    return {"score": float(value)}


def _implemented(function, request, options):
    try:
        answer = function(request, **options)
    except (NotApplicable, Unclear, Refused) as reason:
        return {"outcome": reason.outcome, "message": str(reason)}
    if isinstance(answer, str):
        answer = {"source": answer}
    return dict({"outcome": "ok"}, **answer)


def _answer(role, method, params, options):
    function, settings = _offered[role]
    if role == "reward" and method in ("score", "idle"):
        return _scored((function if method == "score" else settings["idle"])(Round(params), **options))
    if role == "coder" and method == "implement":
        return _implemented(function, params, options)
    if role == "evaluator":
        if method == "open_problem":
            return settings["problem"](params.directory)
        if method == "baseline":
            source = settings["problem"](params.directory)["source"]
            params = Record(params, source=source, seed=0, thorough=False, show_hidden=False)
        if method in ("baseline", "evaluate"):
            return function(params, **options)
    raise ValueError("there is no method %r for a %s" % (method, role))


def _place(error):
    """Where in the author's code an exception was raised: " (reward.py:6)"."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    return " (%s:%d)" % (os.path.basename(frames[-1].filename), frames[-1].lineno) if frames else ""


class _Server:
    def __init__(self, answers):
        self.answers, self.lock, self.role, self.options = answers, threading.Lock(), None, {}

    def send(self, message):
        line = json.dumps(message, separators=(",", ":"), allow_nan=False) + "\n"
        with self.lock:
            self.answers.write(line)
            self.answers.flush()

    def hello(self, params):
        self.role = params.role
        if self.role not in _offered:
            raise ValueError("this script offers %s, no %s" % (", ".join(_offered) or "nothing", self.role))
        function, settings = _offered[self.role]
        return {
            "protocol": PROTOCOL,
            "name": function.__name__,
            "version": str(function.__globals__.get("__version__", "0")),
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
        except (Exception, SystemExit) as error:  # told to the host, which decides what becomes of the run
            traceback.print_exc()
            message = "%s: %s%s" % (type(error).__name__, error, _place(error))
            self.send({"jsonrpc": "2.0", "id": request.id, "error": {"code": -32000, "message": message}})

    def serve(self, requests):
        pool = None
        for line in requests:
            request = json.loads(line, object_hook=Record)
            if "id" not in request:
                continue  # a notification: what was cancelled may still be answered
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
    os.dup2(2, 1)  # print() and C code too: standard output is for answers alone
    sys.stdout.reconfigure(line_buffering=True)  # in the log at once, and not lost where the process is killed
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _Server(answers).serve(requests)
