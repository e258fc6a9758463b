#!/usr/bin/env python3
"""Writes docs/protocol/program.json and evaluation.json: the JSON Schema of what host and program plugins write.

    scripts/make_protocol_schema.py            # after a struct or a message has changed
    scripts/make_protocol_schema.py --check    # as ctest does: exit code 1 where a file is not what this would write

Members, types, enumerators and descriptions come from the C structs of core/abi/kgrpo; the tables below say which
struct is in which message, and what JSON needs beside: which members are left out, required, or may be null.
"""

import argparse
import json
import os
import pathlib
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "docs/protocol")
LARGEST = 2**53 - 1  # the largest integer that every JSON library keeps exactly


def headers():
    folder = pathlib.Path(ROOT, "core/abi/kgrpo")
    return "\n".join(header.read_text() for header in sorted(folder.rglob("*.h")))


TEXT = headers()


def sentence(comment):
    """A member's comment as a description."""
    words = re.sub(r"^nonzero: ", "", " ".join(comment.split())).replace("NULL", "null")
    words = re.sub(r"KGRPO_CODER_(\w+)", lambda word: '"%s"' % word[1].lower(), words)
    if re.fullmatch(r'("[^"]*"(, )?)+', words):
        words = "for example " + words
    return words and words[0].upper() + words[1:] + ("" if words[-1] in ".?" else ".")


def members(struct):
    """(name, C type, comment) of each, in order."""
    body = re.search(r"typedef struct %s \{(.*?)\n\} %s;" % (struct, struct), TEXT, flags=re.S)
    if not body:
        sys.exit(f"make_protocol_schema: core/abi has no struct {struct}")
    for kind, name, comment in re.findall(r"^  ([^;/*(]+?[\s*]+)(\w+); *(?:/\*(.*?)\*/)?", body[1].replace("* const*", "**"), flags=re.S | re.M):
        yield name, kind.replace("const ", "").strip(), comment or ""


def enumerators(enum):
    """Its words: KGRPO_CODER_NOT_APPLICABLE of kgrpo_coder_outcome is not_applicable."""
    body = re.search(r"typedef enum %s \{(.*?)\n\} %s;" % (enum, enum), TEXT, flags=re.S)
    prefix = enum.rsplit("_", 1)[0].upper() + "_"
    return [word.lower() for word in re.findall(r"^  %s(\w+)" % prefix, body[1], flags=re.M)]


def schema_of(kind, comment):
    """The JSON Schema of a C type."""
    enum = re.match(r"\s*an? (kgrpo_\w+)", comment)
    if enum:
        return {"enum": enumerators(enum[1])}
    evaluation = {"$ref": "#/definitions/evaluation"}
    known = {
        "kgrpo_str": {"type": "string"},
        "kgrpo_str*": {"type": "array", "items": {"type": "string"}},
        "double": {"type": "number"},
        "int32_t": {"type": "boolean"},
        "uint32_t": {"type": "integer", "minimum": 0},
        "uint64_t": {"type": "integer", "minimum": 0, "maximum": LARGEST},
        "kgrpo_metric*": {"type": "object", "additionalProperties": {"anyOf": [
            {"type": ["number", "null"]},
            {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3}]}},
        "kgrpo_evaluation*": evaluation,
        "kgrpo_evaluation**": {"type": "array", "items": {"anyOf": [evaluation, {"type": "null"}]}},
        "kgrpo_problem_info*": {"$ref": "#/definitions/problem"},
    }
    if kind == "kgrpo_remark**":
        return {"type": "array", "items": struct("kgrpo_remark")}
    if kind == "kgrpo_coder_answer*":
        return struct("kgrpo_coder_answer", only=("outcome", "source", "summary", "message", "cost", "seconds"), required=True)
    return known[kind]


def struct(name, only=None, leave=(), required=(), null=(), extra=None, closed=True):
    """A struct as a JSON object. `required`: names, or True for all; `extra`: more of a member's schema, by name."""
    properties = {}
    for member, kind, comment in members(name):
        if member == "struct_size" or member.endswith("_count") or member in leave or (only and member not in only):
            continue
        schema = schema_of(kind, comment)
        if member in null:
            schema = {"anyOf": [schema, {"type": "null"}]}
        elif "$ref" in schema and comment:
            schema = {"allOf": [schema]}  # draft 7 ignores keys beside a $ref
        description = "" if "enum" in schema else sentence(comment)
        properties[member] = {**({"description": description} if description else {}), **schema, **(extra or {}).get(member, {})}
    return fields(properties, properties if required is True else required, closed)


def fields(properties, required=True, closed=True):
    made = {"type": "object", "properties": properties}
    if required:
        made["required"] = list(properties if required is True else required)
    return dict({"additionalProperties": False}, **made) if closed else made


def evaluation():
    number = {"minimum": 0}
    made = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Evaluation",
        "description": "What an evaluator found about one kernel. The host writes every member; a program or server that "
                       'answers needs "correct", and "seconds" where it is true. Absent bounds are the value between them.',
    }
    made.update(struct("kgrpo_evaluation", required=["correct"], extra={
        "compiled": {"default": True}, "modelled": {"default": False}, "time_source": {"default": ""}, "diagnosis": {"default": ""},
        "seconds": number, "seconds_low": number, "seconds_high": number, "speedup": dict(number, default=0),
        "speedup_low": dict(number, default=0), "speedup_high": dict(number, default=0), "metrics": {"default": {}},
        "remarks": {"default": []}}))
    made["if"] = {"properties": {"correct": {"const": True}}}
    made["then"] = {"required": ["seconds"], "properties": {"seconds": {"exclusiveMinimum": 0}}}
    return made


def program():
    text, version = {"type": "string"}, {"const": 1}
    directory = {"directory": {"type": "string", "description": "The problem's folder."}}
    judged = struct("kgrpo_evaluate_request", required=True)
    score = struct("kgrpo_reward_request", required=True, null=("candidate", "current", "answer"), extra={"rounds": {"minimum": 1}})
    parameters = {
        "initialize": fields({"protocol": version, "role": {"enum": ["reward", "coder", "evaluator"]}}),
        "configure": fields({"options": {"type": "object", "description": "From the pipeline; satisfies options_schema, defaults filled in."}}),
        "score": {"$ref": "#/definitions/score_params"},
        "idle": {"$ref": "#/definitions/score_params"},
        "implement": struct("kgrpo_coder_request", required=True, null=("current",)),
        "open_problem": fields(directory),
        "evaluate": fields(dict(directory, **judged["properties"])),
    }
    metric = struct("kgrpo_metric_declaration", leave=("direction", "combination"), required=["name"])
    metric["properties"]["better"] = {"enum": ["", "higher", "lower"]}
    results = {
        "initialize": fields({
            "protocol": version,
            "roles": {"type": "array", "items": text, "description": "Holds the role that was asked for."},
            "name": text,
            "version": text,
            "options_schema": {"type": ["object", "null"], "description": "JSON Schema (draft 7) of the program's options; without it any are taken."},
            "concurrency": {"type": "integer", "minimum": 1, "maximum": 65536, "default": 1, "description": "Requests that one copy takes at once."},
            "idle": {"type": "boolean", "default": False, "description": 'A reward that answers "idle".'},
        }, ["protocol", "roles"], closed=False),
        "configure": {"anyOf": [{"type": "null"}, fields({
            "metrics": {"type": "array", "description": "Declarations of what the program reports.", "items": metric},
            "suggestions": {"type": "array", "items": {"type": "string", "minLength": 1},
                            "description": "Of a coder: what it understands, in a fixed order, for warm starts and baselines."},
        }, [], closed=False)]},
        "score": fields({"score": {"type": "number"},
                         "no_score": {"type": "string", "description": "In place of a score: why this round gets none. Its trajectory ends before it."},
                         "parts": {"type": "object", "additionalProperties": {"type": "number"},
                                   "description": "Named parts whose sum is the score, for the run's records."}}, [], closed=False)
        | {"oneOf": [{"required": ["score"]}, {"required": ["no_score"]}]},
        "implement": struct("kgrpo_coder_answer", leave=("seconds", "estimated"), required=["outcome"], closed=False,
                            extra={"cost": {"minimum": 0}}),
        "open_problem": struct("kgrpo_problem_info", leave=("refused", "flags"), required=["name", "source"], closed=False),
        "idle": {"$ref": "#/definitions/score_result"},
        "evaluate": {"$ref": "#/definitions/evaluation"},
    }
    identity = {"type": "integer", "minimum": 0}
    definitions = {
        "evaluation": {"$ref": "evaluation.json"},
        "problem": struct("kgrpo_problem_info", leave=("split", "refused", "flags"), required=True),
        "score_params": score,
    }
    for method, params in parameters.items():
        definitions[method] = fields({"jsonrpc": {"const": "2.0"}, "id": identity, "method": {"const": method}, "params": params})
    definitions["cancel"] = dict(
        {"description": "A notification: its request need not be worked on any further. It may be answered still."},
        **fields({"jsonrpc": {"const": "2.0"}, "method": {"const": "cancel"}, "params": fields({"id": {"type": "integer"}})}))
    definitions["request"] = {"description": "A line that the host writes.",
                              "oneOf": [{"$ref": "#/definitions/" + method} for method in [*parameters, "cancel"]]}
    failure = fields({"code": {"type": "integer"}, "message": {"type": "string", "description": "Told to the user."}, "data": {}}, ["message"])
    definitions["answer"] = dict(
        {"description": 'A line that the program writes: "result" or "error".'},
        **fields({"jsonrpc": {"const": "2.0"}, "id": identity, "result": {}, "error": failure}, ["id"]),
        oneOf=[{"required": ["result"]}, {"required": ["error"]}])
    definitions.update({method + "_result": result for method, result in results.items()})
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Program plugins, protocol 1",
        "description": "JSON-RPC 2.0, an object a line. METHOD_result is the result of METHOD. README.md explains.",
        "anyOf": [{"$ref": "#/definitions/request"}, {"$ref": "#/definitions/answer"}],
        "definitions": definitions,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; compare")
    arguments = parser.parse_args()
    for name, schema in (("evaluation.json", evaluation()), ("program.json", program())):
        path, text = os.path.join(FOLDER, name), json.dumps(schema, indent=2) + "\n"
        if arguments.check:
            if open(path).read() != text:
                sys.exit(f"docs/protocol/{name} is not what core/abi says: run scripts/make_protocol_schema.py")
        else:
            with open(path, "w") as file:
                file.write(text)


if __name__ == "__main__":
    main()
