"""kgrpo_client - judge CUDA kernels by a running `kgrpo-host serve`. One file, no dependencies, Python 3.8 or newer.

    from kgrpo_client import Client

    client = Client()                                   # http://127.0.0.1:8421, token from $KGRPO_TOKEN
    result = client.evaluate("softmax_long", open("mine.cu").read())
    print(result.verdict, result.speedup, result.diagnosis)

Many kernels at once, for a reward function of another framework:

    results = client.evaluate_all([{"problem": "softmax_long", "source": s} for s in sources])
    rewards = [r.reward() for r in results]

Several servers: Client(["http://10.0.0.7:8421", "http://10.0.0.8:8421"]). An evaluation goes to the next one where a
server is busy, fails or is gone. All methods may be called from any thread.
"""
import concurrent.futures
import contextlib
import hashlib
import http.client
import itertools
import json
import os
import pathlib
import socket
import threading
import time
import urllib.parse

_RETRIED = (408, 429, 502, 503, 504)


class ServiceError(Exception):
    """The service refused, or nobody answered. `code` is a word for programs ("unknown_problem"), `status` HTTP's."""

    def __init__(self, message, code="unavailable", status=0):
        super().__init__(message)
        self.code = code
        self.status = status


class Result:
    """What one device's evaluator found about one kernel.

    evaluation, baseline   dictionaries with everything: metrics, remarks, confidence intervals
    compiled, correct      bool
    verdict                "correct", or what failed: "wrong", "not_compiled", "race", ...
    seconds, speedup       of a correct kernel; speedup is over the reference kernel, else None
    diagnosis              sentences: what bounds the time, or what went wrong where
    """

    def __init__(self, problem, json_result):
        self.problem = problem
        self.device = json_result["device"]
        self.baseline = json_result["baseline"]
        self.evaluation = json_result.get("evaluation", self.baseline)
        self.speedup = json_result.get("speedup")
        self.compiled = self.evaluation["compiled"]
        self.correct = self.evaluation["correct"]
        self.verdict = self.evaluation["verdict"]
        self.seconds = self.evaluation["seconds"]
        self.diagnosis = self.evaluation["diagnosis"]
        self.metrics = self.evaluation["metrics"]

    def reward(self, not_compiled=-1.0, wrong=-0.5, correct=0.3):
        """The default of reward_speedup: correct + speedup, or a penalty."""
        if not self.compiled:
            return not_compiled
        return correct + self.speedup if self.correct else wrong

    def __repr__(self):
        speedup = "" if self.speedup is None else ", speedup %.3g" % self.speedup
        return "<%s on %s: %s%s>" % (self.problem, self.device, self.verdict, speedup)


def problem_files(folder):
    """The files of a problem's folder, {name: bytes}."""
    return {f.name: f.read_bytes() for f in pathlib.Path(folder).iterdir() if f.is_file() and not f.name.startswith(".")}


def problem_digest(files):
    """By which a service knows a problem's files: SHA-256, chained over names and contents."""
    digest = b""
    for name in sorted(files, key=lambda n: n.encode()):
        whole = hashlib.sha256()
        for part in (digest, name.encode(), files[name]):
            whole.update(b"%d:" % len(part) + part)
        digest = whole.hexdigest().encode()
    return digest.decode()


class Client:
    """A connection to one service or several.

    servers       an address or a list of them
    token         what the service wants; default: $KGRPO_TOKEN
    wait_seconds  how long an evaluation waits for a service that answers
    timeout       limit for one request, waiting in the service's queue included
    """

    def __init__(self, servers="http://127.0.0.1:8421", token=None, wait_seconds=300.0, timeout=600.0):
        self._servers = [servers] if isinstance(servers, str) else list(servers)
        for server in self._servers:
            if urllib.parse.urlsplit(server).scheme not in ("http", "https"):
                raise ValueError("%r is no address; expected one such as http://10.0.0.7:8421" % server)
        self._token = os.environ.get("KGRPO_TOKEN", "") if token is None else token
        self._wait_seconds = wait_seconds
        self._timeout = timeout
        self._turn = itertools.count()
        self._lock = threading.Lock()
        self._idle = {}  # open connections that are not in use, by server
        self._busy = set()  # connections with a request under way
        self._aborted = False

    def close(self):
        """Ends the connections that are kept. `with Client() as client:` does it too."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connection in itertools.chain.from_iterable(idle.values()):
            connection.close()

    def abort(self):
        """Ends this client from another thread: calls under way raise ServiceError, and the service drops their requests."""
        with self._lock:
            self._aborted, busy = True, list(self._busy)
        for connection in busy:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        self.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- service and problems

    def evaluator(self):
        """What judges: plugin, version, options, devices."""
        return self._call("GET", "/v1/evaluator")

    def problems(self):
        """The names of the service's problems."""
        return [problem["name"] for problem in self._call("GET", "/v1/problems")["problems"]]

    def problem(self, problem):
        """One problem: task, signature, reference source, traits. By name, or a folder here."""
        if self._is_folder(problem):
            return self._with_problem("/v1/problems", None, problem)
        return self._call("GET", "/v1/problems/" + urllib.parse.quote(problem))

    # ---- evaluations

    def evaluate(self, problem, source=None, devices=None, seed=0, thorough=False):
        """Judges one kernel; without a source, the reference.

        problem  a name of problems(), or the folder of a problem here
        devices  None: the service's first; a name; or a list, for a dictionary {device: Result}
        Raises ServiceError where it could not be judged.
        """
        body = {"seed": seed, "thoroughness": "thorough" if thorough else "quick"}
        if source is not None:
            body["source"] = source
        if devices is not None:
            body["devices"] = [devices] if isinstance(devices, str) else list(devices)
        answer = self._with_problem("/v1/evaluations", body, problem)
        for result in answer["results"]:
            if "error" in result:
                raise ServiceError(result["error"]["message"], result["error"]["code"])
        results = {result["device"]: Result(answer["problem"], result) for result in answer["results"]}
        return results if devices is not None and not isinstance(devices, str) else next(iter(results.values()))

    def evaluate_all(self, evaluations, threads=16):
        """Judges many, several at a time: a list of what evaluate() returns. `evaluations` holds its arguments as
        dictionaries. The first that could not be judged is raised, and the others are given up."""
        evaluations = list(evaluations)
        with concurrent.futures.ThreadPoolExecutor(max(1, min(threads, len(evaluations)))) as pool:
            futures = [pool.submit(self.evaluate, **one) for one in evaluations]
            try:
                return [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                raise

    def stream(self, evaluations):
        """Judges many in one request of one service; yields (index, Result) as each ends. `evaluations` holds the
        arguments of evaluate(), problems by name. Leaving the loop cancels the rest."""
        body = {"stream": True, "evaluations": []}
        for one in evaluations:
            one = dict(one)
            one["thoroughness"] = "thorough" if one.pop("thorough", False) else "quick"
            body["evaluations"].append(one)
        connection, response = self._open(self._servers[next(self._turn) % len(self._servers)], "POST",
                                          "/v1/evaluations", json.dumps(body))
        try:
            if response.status != 200:
                raise self._error(response.status, response.read())
            for line in response:
                result = json.loads(line)
                if "done" in result:
                    return
                if "error" in result:
                    raise ServiceError(result["error"]["message"], result["error"]["code"])
                yield result["index"], Result(result["problem"], result)
            raise ServiceError("the service ended in the middle of its answer")
        finally:
            connection.close()

    # ---- requests

    @staticmethod
    def _is_folder(problem):
        return isinstance(problem, os.PathLike) or os.sep in problem

    # Sends a problem folder's digest, and its files too if the service does not know the digest.
    def _with_problem(self, path, body, problem):
        if not self._is_folder(problem):
            return self._call("POST", path, dict(body, problem=problem))
        files = problem_files(problem)
        named = {"name": pathlib.Path(problem).resolve().name, "sha256": problem_digest(files)}
        for named in (named, dict(named, files={name: data.decode() for name, data in files.items()})):
            try:
                return self._call("POST", path, named if body is None else dict(body, problem=named))
            except ServiceError as error:
                if error.code != "unknown_problem" or "files" in named:
                    raise

    def _call(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        end = time.monotonic() + self._wait_seconds
        first = next(self._turn)
        failures = {}
        for attempt in itertools.count():
            server = self._servers[(first + attempt) % len(self._servers)]
            pause = 0.0
            try:
                connection, response = self._open(server, method, path, text)
                with contextlib.ExitStack() as unless_read:
                    unless_read.callback(connection.close)  # also cancels the request at the service
                    data = response.read()
                    unless_read.pop_all()
                self._keep(server, connection, response)
                if response.status == 200:
                    return json.loads(data)
                error = self._error(response.status, data)
                if response.status not in _RETRIED:
                    raise error
                failures[server] = str(error)
                if response.status == 429:
                    end = time.monotonic() + self._wait_seconds  # the service is running, so the wait starts anew
                    pause = float(response.getheader("Retry-After") or 1)
            except (OSError, http.client.HTTPException, ValueError) as error:
                failures[server] = "%s: %s" % (type(error).__name__, error)
            if self._aborted or time.monotonic() > end:
                break
            if (attempt + 1) % len(self._servers) == 0:  # every server was tried
                time.sleep(min(10.0, max(pause, 0.1 * 2 ** min(attempt // len(self._servers), 6))))
        raise ServiceError("no service answered within %g s:\n  %s" % (
            self._wait_seconds, "\n  ".join("%s: %s" % failure for failure in failures.items())))

    # Sends a request. Returns the connection and the response, whose body is not read yet.
    def _open(self, server, method, path, text):
        with self._lock:
            idle = self._idle.get(server)
            connection = idle.pop() if idle else None
        kept = connection is not None
        if not kept:
            parts = urllib.parse.urlsplit(server)
            kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
            connection = kind(parts.hostname, parts.port, timeout=self._timeout)
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        with self._lock:
            if self._aborted:
                raise ServiceError("the client was ended by abort()")
            self._busy = {one for one in self._busy if one.sock is not None} | {connection}
        try:
            connection.request(method, path, None if text is None else text.encode(), headers)
            return connection, connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            connection.close()
            if not kept:
                raise
            return self._open(server, method, path, text)  # the server closed the idle connection
        except BaseException:
            connection.close()  # also cancels the request at the service
            raise

    def _keep(self, server, connection, response):
        if response.will_close:
            connection.close()
            return
        with self._lock:
            self._busy.discard(connection)
            self._idle.setdefault(server, []).append(connection)

    @staticmethod
    def _error(status, data):
        try:
            error = json.loads(data)["error"]
            return ServiceError(error["message"], error["code"], status)
        except (ValueError, KeyError, TypeError):
            return ServiceError("HTTP %d" % status, status=status)
