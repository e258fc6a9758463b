#!/usr/bin/env python3
"""Prints the keys that an installed transformers reads from a config and that config_keys.json lacks; exit code 1 if there are any.

    tests/policy/config_keys.py

A key is read as config.KEY, by getattr(config, "KEY") or in the rotary parameters, in the code of the architectures that
policy_qwen opens and in what that code uses for masks, rotary positions and loading; fields of their configurations count, too.
"""
import json
import pathlib
import re
import sys

READS = re.compile(r"""config\.([a-z]\w*)\b(?!\()|[gs]etattr\((?:\w+\.)*config,\s*"(\w+)"|rope_parameters(?:_dict)?(?:\.get\(|\[)"(\w+)\"""")


def keys_read(root):
    files = [root / "models" / kind / f"{part}_{kind}.py" for kind in ("llama", "mistral", "qwen2", "qwen3") for part in ("modeling", "configuration")]
    keys = set()
    for file in [*files, *(root / name for name in ("masking_utils.py", "modeling_rope_utils.py", "modeling_utils.py"))]:
        text = file.read_text()
        keys.update(next(filter(None, match.groups())) for match in READS.finditer(text))
        if file.name.startswith("configuration_"):
            keys.update(re.findall(r"^    (\w+): ", text, re.M))
    return keys


def main():
    import transformers
    listed = json.loads((pathlib.Path(__file__).parent / "config_keys.json").read_text())
    new = keys_read(pathlib.Path(transformers.__file__).parent) - {key for keys in listed.values() for key in keys}
    print(f"transformers {transformers.__version__}: {' '.join(sorted(new)) or 'every key is in the list'}")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
