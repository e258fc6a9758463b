"""A program that answers, or fails in one way: faulty.py HOW [STATE FILE [METHOD]].

METHOD ("fail" where none is named) fails, all others are answered."""
import json
import os
import sys
import time

how = sys.argv[1]
state = sys.argv[2] if len(sys.argv) > 2 else None
failing = sys.argv[3] if len(sys.argv) > 3 else "fail"


def put(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def result(request, value):
    put(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": value}))


held = []
for line in sys.stdin:
    request = json.loads(line)
    method = request["method"]
    if "id" not in request:
        continue
    if method == "initialize":
        if how == "garbage_hello":
            sys.stdout.write("Hello! I am a reward.\n")  # arrives with the answer, in one piece
        if how == "late":
            time.sleep(60)
        if how == "dies_at_once":
            print("no module named torch", file=sys.stderr, flush=True)
            sys.exit(3)
        if how == "ends_at_once":
            sys.exit(0)
        if how == "dies_at_length":
            print("Error: " + "/folder" * 40 + "/mine.py: no such file", file=sys.stderr, flush=True)
            sys.exit(2)
        if how == "versioned":
            result(request, {"protocol": 1, "roles": ["reward"], "name": "mine", "version": "1.2"})
            continue
        if how == "terse":
            result(request, {"protocol": 1, "roles": ["reward"]})
            continue
        schema = {"type": "object", "additionalProperties": False, "properties": {"cap": {"type": "number", "default": 8}}}
        if how == "odd_schema":
            schema["properties"]["cap"]["formt"] = "money"
        result(request, {"protocol": 2 if how == "other_protocol" else 1, "roles": ["coder" if how == "other_role" else "reward"],
                         "name": how, "concurrency": 4 if how in ("unordered", "dies_with_four") else 1,
                         "options_schema": schema})
    elif method == "configure":
        if how == "refuses":
            put(json.dumps({"id": request["id"], "error": {"code": 1, "message": "cap must be even"}}))
        else:
            options = request["params"]["options"]
            result(request, {})
    elif method == "options":
        result(request, options)
    elif method != failing:
        if how == "unordered":  # four at a time, the last first
            held.append(request)
            if len(held) == 4:
                while held:
                    answered = held.pop()
                    result(answered, answered["params"])
        elif how == "large":
            result(request, "x" * request["params"]["size"])
        else:
            result(request, request["params"])
    elif how == "garbage":
        put("Traceback (most recent call last):")
    elif how == "array":
        put("[1, 2]")
    elif how == "too_much":
        while True:
            sys.stdout.write("x" * 65536)
    elif how == "twice":
        result(request, 1)
        result(request, 2)
    elif how == "deep":
        put('{"id": %d, "result": %s%s}' % (request["id"], "[" * 10000, "]" * 10000))
    elif how == "both":
        put('{"id": %d, "result": 1, "error": {"message": "no"}}' % request["id"])
    elif how == "not_utf8":
        sys.stdout.buffer.write(b'{"id": %d, "result": "\xff\xfe"}\n' % request["id"])
        sys.stdout.flush()
    elif how == "never":
        with open(state, "a") as file:
            file.write("asked\n")
        time.sleep(60)
    elif how == "forks":  # the child holds our streams open, and says where it is
        child = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
        with open(state, "w") as file:
            file.write(str(child))
        os._exit(4)
    elif how == "dies_once":  # the second copy finds the file
        if not os.path.exists(state):
            open(state, "w").close()
            os.kill(os.getpid(), 11)
        result(request, "at last")
    elif how == "dies_with_four":
        os._exit(5)
    elif how == "says_error":
        put(json.dumps({"id": request["id"], "error": {"code": 1, "message": "no such GPU"}}))
    else:
        print("I am out of memory", file=sys.stderr, flush=True)
        sys.exit(9)
