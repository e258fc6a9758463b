"""Writes problem.yaml. Used by one_problem.py; the format is docs/problems.md's."""
import json


def text(value):
    """A YAML scalar: as JSON, which is YAML, where plain letters will not do."""
    plain = isinstance(value, str) and value and all(c.isalnum() or c in "_-./*+() " for c in value)
    words = {"null", "true", "false", "yes", "no", "on", "off", "n", "y", "none"}
    if isinstance(value, str) and value.isdigit():
        return value
    if plain and value[0].isalpha() and value[-1] != " " and value.lower() not in words:
        return value
    return json.dumps(value) if isinstance(value, str) else str(value)


def flow(mapping):
    """{name: a, shape: [n, m]}"""
    parts = []
    for key, value in mapping.items():
        if isinstance(value, list):
            parts.append(f"{key}: [{', '.join(text(item) for item in value)}]")
        elif isinstance(value, dict):
            parts.append(f"{key}: {flow(value)}")
        else:
            parts.append(f"{key}: {text(value)}")
    return "{" + ", ".join(parts) + "}"


def block(value, indent="  "):
    """A literal block, whose lines stay as they are."""
    lines = [line.rstrip() for line in value.expandtabs(4).strip("\n").split("\n")]
    return "|\n" + "\n".join(indent + line if line else "" for line in lines)


def write(problem):
    """`problem`: what one_problem.py found, as a mapping. Returns the file's text."""
    lines = [f"# Imported from KernelBench (MIT licence), {problem['source']}.",
             f"name: {problem['name']}",
             f"title: {text(problem['title'])}",
             f"family: {problem['family']}",
             f"split: {problem['split']}",
             f"traits: [{', '.join(text(trait) for trait in problem['traits'])}]"]
    if problem.get("refused"):
        lines.append(f"refused: {text(problem['refused'])}")
    if problem.get("flags"):
        lines.append(f"flags: [{', '.join(text(flag) for flag in problem['flags'])}]")
    lines.append("description: " + block(problem["description"]))
    if problem.get("refused"):
        return "\n".join(lines) + "\n"
    lines.append("oracle: torchscript")
    if problem["oracle_dtype"] != "float64":
        lines.append(f"oracle_dtype: {problem['oracle_dtype']}")
    if not problem["has_reference"]:
        lines.append("reference: none")
    lines.append("parameters:")
    lines += [f"  - {flow(parameter)}" for parameter in problem["parameters"]]
    lines.append("sizes:")
    lines.append(f"  visible: [{', '.join(flow(size) for size in problem['visible'])}]")
    lines.append(f"  hidden: [{', '.join(flow(size) for size in problem['hidden'])}]")
    lines.append(f"  timing: {flow(problem['timing'])}")
    if problem.get("tolerance"):
        lines.append(f"tolerance: {flow(problem['tolerance'])}")
    lines.append(f"accumulations: {text(problem['accumulations'])}")
    lines.append(f"needs: {flow(problem['needs'])}")
    lines.append("allow: {device_malloc: true}")
    return "\n".join(lines) + "\n"
