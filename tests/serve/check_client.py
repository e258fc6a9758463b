"""Uses python/kgrpo_client.py against the services of client_test.cc, whose evaluator is fake_judge.cc.

usage: check_client.py ADDRESS FOLDER: a service, and a problem's folder that it does not know
"""
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from kgrpo_client import Client, ServiceError  # noqa: E402

address, folder = sys.argv[1], pathlib.Path(sys.argv[2])
client = Client([address, "http://127.0.0.1:1"], wait_seconds=5)  # nobody is at the other one
known = client.problems()
assert known == ["one", "two"], known
assert client.problem("two")["task"] == "the task"
assert client.evaluator()["devices"][1]["name"] == "slow"

result = client.evaluate("one", "x", seed=4, thorough=True)
assert (result.verdict, result.speedup, result.diagnosis) == ("correct", 4.0, "seed 4, thorough"), result
result = client.evaluate("one", "x")
assert (result.speedup, result.reward(), result.metrics) == (4.0, 4.3, {"comments": 3.0}), result
assert client.evaluate("one", "wrong").reward() == -0.5
both = client.evaluate("one", "x", devices=["slow", "fast"])
assert both["slow"].seconds == 2.0 and both["fast"].seconds == 0.25, both
assert client.evaluate("one").diagnosis == "the reference"

mine = client.evaluate(folder, "x")
assert mine.problem == folder.name and mine.correct, mine
assert client.problem(str(folder))["name"] == folder.name

many = client.evaluate_all({"problem": "one", "source": "wrong" if i % 2 else "x", "seed": i} for i in range(50))
assert [r.diagnosis for r in many] == ["seed %d" % i for i in range(50)]
assert [r.correct for r in many] == [i % 2 == 0 for i in range(50)]

direct = Client(address, wait_seconds=5)
seen = dict(direct.stream({"problem": "one", "source": "x", "seed": i} for i in range(20)))
assert sorted(seen) == list(range(20)) and seen[7].diagnosis == "seed 7"
for index, _ in direct.stream([{"problem": "one", "source": "x"}, {"problem": "one", "source": "hold"}]):
    break  # which cancels the one that is held
assert index == 0

for bad, code in ((lambda: client.evaluate("three", "x"), "unknown_problem"), (lambda: client.evaluate("one", 3), "invalid"),
                  (lambda: client.evaluate("one", "x", devices="h100"), "unknown_device")):
    try:
        bad()
        raise SystemExit("%s was expected" % code)
    except ServiceError as error:
        assert error.code == code, error
try:
    Client("http://127.0.0.1:1", wait_seconds=0.2).problems()
    raise SystemExit("nobody is there")
except ServiceError as error:
    assert "ConnectionRefusedError" in str(error), error

# A connection that the service has closed meanwhile is opened again; threads have their own.
threads = [threading.Thread(target=client.evaluate, args=("one", "x")) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
client.close()
direct.close()
print("ok")
