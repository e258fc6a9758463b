"""Checks that kgrpo-model reads model and adapter folders as transformers and peft do, or refuses them by name.

    python -m venv venv && venv/bin/pip install torch==2.11.0 'transformers==5.24.*' peft==0.21.0 trl==1.16.0 jinja2
    git clone --depth 1 https://github.com/ikawrakow/ik_llama.cpp templates/llama.cpp
    git clone --depth 1 https://github.com/chujiezheng/chat_templates templates/chat_templates
    venv/bin/python tests/golden/policy/check_folders.py build/tests/kgrpo-model --templates templates [NAME...]

Makes a tiny random folder for each row of docs/models.md (architecture, rotary positions, head, window, adapter,
damage, tokenizer, chat template) in a temporary folder. If it should work, 40 greedy tokens are transformers', and
log-probabilities within 1e-4; for tokenizers and templates also the ids and texts of 201 strings and up to 120 chats.
If not, kgrpo-model fails, and its message contains the words of the row. NAME: only rows whose name contains it.

Tokenizers are those of tests/golden/tokenizer, with the other files as released folders have them. Chat templates are
read from tests/golden/tokenizer, TRL and the folder of --templates; without its template a row is not tried.
"""

import argparse
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
from make_models import VOCABULARY, make_tokenizer, save
from safetensors.torch import load_file, save_file

TOKENIZERS = pathlib.Path(__file__).resolve().parent.parent / "tokenizer"
sys.path.insert(0, str(TOKENIZERS))
from make_chat_golden import TOOLS, conversations  # noqa: E402
from pack import unpacked  # noqa: E402

TOKENIZER_DATA = []  # the folder of ../tokenizer.tar.xz, unpacked

TOKENS, TOLERANCE = 40, 1e-4
QWEN2 = dict(
    architectures=["Qwen2ForCausalLM"],
    model_type="qwen2",
    vocab_size=VOCABULARY,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    rms_norm_eps=1e-6,
    rope_theta=1e4,
    hidden_act="silu",
    tie_word_embeddings=False,
    eos_token_id=2,
)
QWEN3 = {**QWEN2, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 16}
LLAMA = {**QWEN2, "architectures": ["LlamaForCausalLM"], "model_type": "llama"}
MISTRAL = {**QWEN2, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": None}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


def randomize(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("norm.weight"):
                parameter.copy_(1 + 0.2 * noise)
            else:
                parameter.copy_(noise * (0.2 if parameter.ndim == 1 else 1.5 / math.sqrt(parameter.shape[1])))


def save_json(folder, name, value):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(value, file, ensure_ascii=False, indent=1)


def edit_json(folder, name, to=None, **changes):
    """Sets keys of a file, and writes it to the folder `to`. A function makes the new value of the old."""
    with open(os.path.join(folder, name)) as file:
        value = json.load(file)
    for key, change in changes.items():
        value[key] = change(value.get(key)) if callable(change) else change
    save_json(to or folder, name, value)


def write_model(folder, config, edit=None, of=None):
    """A folder with that config.json. `of`: the configuration that the weights are made by, if transformers refuses the
    other. `edit` changes the tensors, a dictionary."""
    os.makedirs(folder)
    save_json(folder, "config.json", of or config)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder))
    randomize(model, 12)
    tensors = {name: value.detach().contiguous().clone() for name, value in model.named_parameters()}
    if edit:
        edit(tensors)
    save_json(folder, "config.json", config)
    save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    save(folder, make_tokenizer())
    return folder


def write_adapter(folder, base, options, changes=None):
    """A PEFT folder with random A and B beside `base`; `changes`: keys of adapter_config.json."""
    from peft import LoraConfig, get_peft_model

    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **options))
    generator = torch.Generator().manual_seed(5)
    if isinstance(options.get("init_lora_weights", True), bool):
        with torch.no_grad():
            for name, parameter in adapted.named_parameters():
                if "lora_" in name:
                    noise = torch.randn(parameter.shape, generator=generator)
                    parameter.copy_(noise / math.sqrt(parameter.shape[-1]) * 0.5)
    adapted.save_pretrained(folder)
    edit_json(folder, "adapter_config.json", base_model_name_or_path=base, **(changes or {}))
    return folder


def reference_of(folder):
    path = os.path.join(folder, "adapter_config.json")
    if not os.path.exists(path):
        return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    from peft import PeftModel

    with open(path) as file:
        base = json.load(file)["base_model_name_or_path"]
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    return PeftModel.from_pretrained(model, folder).eval()


def call(host, command, folder, lines, *arguments):
    """The JSON lines written, the exit status and what is in standard error."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    result = subprocess.run([host, command, folder, *arguments], input=text, text=True, capture_output=True)
    assert result.returncode >= 0, f"{command} ended by signal {-result.returncode}: {result.stderr[-300:]}"
    return [json.loads(line) for line in result.stdout.split("\n")[:-1]], result.returncode, result.stderr


def run(host, command, folder, lines, *arguments):
    written, status, errors = call(host, command, folder, lines, *arguments)
    return (written if status == 0 else None), errors


def tokenize(host, folder, lines):
    """For each line the text and ids, or the message with which it is refused."""
    results = []
    while len(results) < len(lines):
        written, status, errors = call(host, "tokenize", folder, lines[len(results) :])
        results += [(line["text"], line["ids"]) for line in written]
        if status != 0:
            assert f"<stdin>:{len(written) + 1}:" in errors, errors.strip()
            results.append(errors.strip())
    return results


def compare_texts(host, folder):
    with open(TOKENIZER_DATA[0] / "released/strings.jsonl") as file:
        strings = [json.loads(line) for line in file]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    given = tokenize(host, folder, [{"text": string} for string in strings])
    for string, ours in zip(strings, given, strict=True):
        ids = tokenizer(string).input_ids
        assert ours == (tokenizer.decode(ids), ids), f"{string!r} is {ours}, not {tokenizer.decode(ids)!r}, {ids}"
    return f"{len(strings)} strings"


def chat_lines(template):
    """Chats that the template reads, and one for each key that it does not, which is refused."""
    unread = set()
    for index, messages in enumerate(conversations()):
        keys = {key for message in messages for key in message}
        for tools in ({}, {"tools": TOOLS}) if "tool_calls" in keys or index in (0, 2, 6) else ({},):
            new = {key for key in keys | set(tools) if key not in template and key != "thinking"}
            if new and new <= unread:
                continue
            unread |= new
            for add in (True, False) if index % 3 == 0 and not new else (index % 3 == 1,):
                line = {"messages": messages, "add_generation_prompt": add, **tools}
                yield line
                if "enable_thinking" in template and index % 3 == 0 and not new:
                    yield from ({**line, "enable_thinking": thinking} for thinking in (True, False))


def render(tokenizer, line):
    """The text and ids, or None if the template or transformers refuses."""
    arguments = json.loads(json.dumps(line))
    messages = arguments.pop("messages")
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, **arguments)
    except Exception:
        return None
    return text, tokenizer(text, add_special_tokens=False).input_ids


def is_dropped(tokenizer, line, message, theirs):
    """Whether `message` refuses what changes nothing in the text."""
    line = json.loads(json.dumps(line))
    if found := re.search(r"messages\[(\d+)\]\.(\w+): the chat template does not read it", message):
        del line["messages"][int(found[1])][found[2]]
    elif found := re.search(r"the chat template does not read '(\w+)'", message):
        del line[found[1]]
    else:
        return False
    return render(tokenizer, line) == theirs


def compare_chats(host, folder):
    """What happened, and the ids of two chats."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    lines = list(chat_lines(tokenizer.get_chat_template(tools=TOOLS)))
    equal, refused, dropped = [], 0, 0
    for line, ours in zip(lines, tokenize(host, folder, lines), strict=True):
        theirs = render(tokenizer, line)
        if isinstance(ours, str):
            assert theirs is None or is_dropped(tokenizer, line, ours, theirs), f"{ours}\n{line} is {theirs[0]!r}"
            refused, dropped = refused + (theirs is None), dropped + (theirs is not None)
        else:
            assert ours == theirs, f"{line} is {ours}, not {theirs}"
            equal.append(theirs[1])
    assert len(equal) >= 8, f"only {len(equal)} chats are not refused"
    chosen = sorted(equal, key=len)[len(equal) // 4 :][:2]
    return f"{len(equal)} chats, {refused} refused by both, {dropped} with unread keys refused", chosen


def compare(host, folder, reference, lengths=(60, 7), settings=(), prompts=None, texts=False):
    """The greatest difference of log-probabilities; raises AssertionError with a message."""
    generator = torch.Generator().manual_seed(3)
    model = reference_of(reference)
    ends = model.generation_config.eos_token_id or []
    ends = ends if isinstance(ends, list) else [ends]
    prompts = prompts or [torch.randint(3, VOCABULARY, (count,), generator=generator).tolist() for count in lengths]
    written, errors = run(
        host,
        "generate",
        folder,
        [{"prompt_ids": prompt} for prompt in prompts],
        *("--max-new-tokens", str(TOKENS), "--temperature", "0", *settings),
    )
    assert written is not None, errors.strip()
    if texts:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        for line in written:
            text = tokenizer.decode(line["ids"], skip_special_tokens=True)
            assert line["text"] == text, f"{line['ids']} is {line['text']!r}, not {text!r}"
    completions = [torch.randint(3, VOCABULARY, (20,), generator=generator).tolist() for _ in prompts]
    scored, errors = run(
        host, "score", folder, [{"prompt_ids": p, "completion_ids": c} for p, c in zip(prompts, completions, strict=True)], *settings
    )
    assert scored is not None, errors.strip()
    most = 0.0
    for prompt, line, completion, given in zip(prompts, written, completions, scored, strict=True):
        for ids, logprobs, is_greedy in ((line["ids"], line["logprobs"], True), (completion, given["logprobs"], False)):
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1].float()
            if is_greedy:
                assert len(ids) == TOKENS or ids[-1] in ends, f"{len(ids)} tokens"
                # Equal but for near ties.
                behind = logits.max(-1).values - logits.gather(1, torch.tensor(ids)[:, None])[:, 0]
                assert behind.max() < 1e-4, f"greedy tokens differ, by {behind.max():.3g} in logits"
            theirs = torch.log_softmax(logits, -1).gather(1, torch.tensor(ids)[:, None])[:, 0]
            most = max(most, (theirs - torch.tensor(logprobs)).abs().max().item())
    assert most < TOLERANCE, f"log-probabilities differ by {most:.3g}"
    return most


# ---- rows: name, how the folder is made (path -> folder, or (folder, the reference's)), words of the refusal or None

ROWS = []


def row(name, refusal=None, **options):
    def add(make):
        ROWS.append((name, make, refusal, options))
        return make

    return add


def model_row(name, config, refusal=None, edit=None, of=None, **options):
    ROWS.append((name, lambda path: write_model(path, config, edit, of), refusal, options))


def adapter_row(name, options, refusal=None, base=None, changes=None, **given):
    def make(path):
        return write_adapter(path, write_model(path + "_base", base or QWEN2), options, changes)

    ROWS.append((name, make, refusal, given))


# Architectures.
model_row("qwen2", QWEN2)
model_row("qwen2, tied", {**QWEN2, "tie_word_embeddings": True})
model_row("qwen2, heads of another size", {**QWEN2, "head_dim": 16})
model_row("qwen2, as many key heads as heads", {**QWEN2, "num_key_value_heads": None})
model_row("qwen2, swish", {**QWEN2, "hidden_act": "swish"})
model_row("qwen3", QWEN3)
model_row("qwen3, default size of heads", without(QWEN3, "head_dim"))
model_row("qwen3, biases", {**QWEN3, "attention_bias": True})
model_row("llama", LLAMA)
model_row("llama, no number of key heads", without(LLAMA, "num_key_value_heads"))
model_row("llama, biases", {**LLAMA, "attention_bias": True, "mlp_bias": True})
model_row("llama, a window that its code ignores", {**LLAMA, "sliding_window": 8, "use_sliding_window": True})
model_row("mistral", MISTRAL)
model_row("mistral, heads of another size", {**MISTRAL, "head_dim": 16})
model_row("gelu", {**QWEN2, "hidden_act": "gelu"}, '"hidden_act" is "gelu"')
model_row("phi3", {**QWEN2, "architectures": ["Phi3ForCausalLM"], "model_type": "phi3"}, "Phi3ForCausalLM", of=QWEN2)
model_row("two architectures", {**QWEN2, "architectures": ["LlamaForCausalLM"]}, "another architecture")
model_row("quantized", {**QWEN2, "quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantization_config", of=QWEN2)
model_row("no number of layers", without(QWEN2, "num_hidden_layers"), '"num_hidden_layers" is missing', of=QWEN2)
model_row("qwen2, no number of key heads", without(QWEN2, "num_key_value_heads"), '"num_key_value_heads" (32)', of=QWEN2)

# The head.
model_row(
    "tied, the same head in the file",
    {**QWEN2, "tie_word_embeddings": True},
    edit=lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"].clone()}),
)
model_row(
    "tied, another head in the file",
    {**QWEN2, "tie_word_embeddings": True},
    edit=lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"].flip(0).contiguous()}),
    note="differs from the embedding: it is used as the head",
)
model_row(
    "tied, only the head in the file",
    {**QWEN2, "tie_word_embeddings": True},
    edit=lambda t: t.update({"lm_head.weight": t.pop("model.embed_tokens.weight")}),
)
model_row("no head", QWEN2, 'the weights lack "lm_head.weight"', edit=lambda t: t.pop("lm_head.weight"))

# Rotary positions.
NO_THETA = without(QWEN2, "rope_theta")
model_row("rope_parameters", {**NO_THETA, "rope_parameters": {"rope_type": "default", "rope_theta": 5e3}})
model_row("no rope keys", NO_THETA)
model_row("linear", {**QWEN2, "rope_scaling": {"type": "linear", "factor": 2.0}})
model_row("llama3", {**LLAMA, "rope_scaling": LLAMA3})
model_row("yarn", {**QWEN2, "rope_scaling": YARN})
model_row("yarn, qwen3, in rope_parameters", {**QWEN3, "rope_parameters": {**YARN, "rope_theta": 1e4}})
model_row("yarn, no original length", {**QWEN2, "rope_scaling": {"type": "yarn", "factor": 2.0}})
model_row("yarn, attention_factor", {**QWEN2, "rope_scaling": {**YARN, "attention_factor": 0.8}})
model_row("yarn, mscale", {**QWEN2, "rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5}})
model_row("yarn, beta", {**QWEN2, "rope_scaling": {**YARN, "beta_fast": 8, "beta_slow": 2}})
model_row("yarn, not truncated", {**QWEN2, "rope_scaling": {**YARN, "truncate": False}})
model_row("yarn, original length beside it", {**QWEN2, "rope_scaling": YARN, "original_max_position_embeddings": 64})
model_row(
    "rope_scaling beside rope_parameters",
    {**NO_THETA, "rope_scaling": YARN, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
)
model_row(
    "empty rope_scaling beside rope_parameters",
    {**NO_THETA, "rope_scaling": {}, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
)
for kind in ("dynamic", "longrope", "su", "mrope", "proportional"):
    model_row(kind, {**QWEN2, "rope_scaling": {"type": kind, "factor": 2.0}}, f'the rotary scaling "{kind}"', of=QWEN2)
model_row("partial rotation", {**QWEN2, "partial_rotary_factor": 0.5}, '"partial_rotary_factor"')
model_row(
    "rotary positions by type of layer",
    {**QWEN2, "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}},
    "full_attention",
    of=QWEN2,
)

# Sliding windows.
WINDOW = {"use_sliding_window": True, "max_window_layers": 1}
model_row("window not in use", {**QWEN2, "sliding_window": 8})
model_row("window as long as the context", {**QWEN2, **WINDOW, "sliding_window": 256})
model_row("window in layers that are not there", {**QWEN2, "use_sliding_window": True, "sliding_window": 8})
model_row("no length of the window", {**QWEN2, **WINDOW})
model_row("window switched off by null", {**QWEN2, **WINDOW, "sliding_window": None})
model_row("window longer than the texts", {**QWEN2, **WINDOW, "sliding_window": 128}, note="limited to")
model_row("window shorter than the texts", {**QWEN2, **WINDOW, "sliding_window": 32}, "sliding window")
model_row(
    "window by type of layer, shorter than the texts",
    {**QWEN2, "use_sliding_window": True, "sliding_window": 32, "layer_types": ["full_attention", "sliding_attention", "full_attention"]},
    "sliding window",
)
model_row(
    "types of layers without a window",
    {**QWEN2, "layer_types": ["sliding_attention"] * 3},
    '"use_sliding_window" and "sliding_window" set none',
)
model_row("mistral, default window", {**without(MISTRAL, "sliding_window"), "max_position_embeddings": 8192}, note="4096")
model_row("mistral, window shorter than the texts", {**MISTRAL, "sliding_window": 16}, "sliding window")

# Adapters.
LIST = ["q_proj", "v_proj", "down_proj"]
adapter_row("adapter, a list", dict(r=4, lora_alpha=6, target_modules=LIST))
adapter_row("adapter, all-linear", dict(r=4, lora_alpha=6, target_modules="all-linear"))
adapter_row("adapter, rslora", dict(r=4, lora_alpha=6, target_modules=LIST, use_rslora=True))
adapter_row("adapter, regular expression", dict(r=4, lora_alpha=6, target_modules=r".*layers\.[02]\..*(q_proj|up_proj)"))
adapter_row("adapter, paths", dict(r=4, target_modules=["model.layers.1.mlp.up_proj", "layers.0.self_attn.k_proj"]))
adapter_row("adapter, names of other models too", dict(r=4, target_modules=["q_proj", "c_attn"]))
adapter_row("adapter, excluded names", dict(r=4, target_modules="all-linear", exclude_modules=["layers.1.mlp.up_proj", "q_proj"]))
adapter_row("adapter, excluded expression", dict(r=4, target_modules=LIST, exclude_modules=r".*\.2\..*v_proj"))
adapter_row("adapter, layers", dict(r=4, target_modules=LIST, layers_to_transform=[0, 2]))
adapter_row("adapter, one layer", dict(r=4, target_modules=LIST, layers_to_transform=1, layers_pattern="layers"))
adapter_row("adapter, rank_pattern", dict(r=4, target_modules=LIST, rank_pattern={"q_proj": 2, r"layers\.1.*v_proj": 7, "v_proj": 3}))
adapter_row(
    "adapter, rank_pattern, alpha_pattern, rslora",
    dict(r=4, target_modules=LIST, use_rslora=True, rank_pattern={"q_proj": 2}, alpha_pattern={"0.self_attn.q_proj": 32, "down_proj": 1}),
)
adapter_row("adapter, rank above the rows of k_proj", dict(r=24, target_modules=["k_proj", "q_proj"]))
adapter_row("adapter, gaussian", dict(r=4, target_modules=LIST, init_lora_weights="gaussian"))
adapter_row("adapter, orthogonal", dict(r=4, target_modules=LIST, init_lora_weights="orthogonal"))
adapter_row("adapter, dropout", dict(r=4, target_modules=LIST, lora_dropout=0.1))
adapter_row("adapter, tied base", dict(r=4, target_modules=LIST), base={**QWEN2, "tie_word_embeddings": True})
adapter_row("adapter, yarn base", dict(r=4, target_modules=LIST), base={**LLAMA, "rope_scaling": YARN})
for kind in ("pissa", "pissa_niter_4", "olora", "mica"):
    adapter_row(f"adapter, {kind}", dict(r=4, target_modules=LIST, init_lora_weights=kind), '"init_lora_weights"')
for kind in ("corda", "loftq"):
    adapter_row(
        f"adapter, {kind}", dict(r=4, target_modules=LIST), f'"init_lora_weights" is "{kind}"', changes=dict(init_lora_weights=kind)
    )
for key, value in dict(
    use_dora=True,
    lora_bias=True,
    bias="lora_only",
    modules_to_save=["lm_head"],
    trainable_token_indices=[4, 5],
    alora_invocation_tokens=[5, 6],
    layer_replication=[[0, 2], [1, 3]],
).items():
    adapter_row(f"adapter, {key}", dict(r=4, target_modules=LIST, **{key: value}), f'"{key}" is')
for key, value in dict(megatron_config={"a": 1}, target_parameters=["a"], use_qalora=True, a_new_key=3).items():
    adapter_row(f"adapter, {key}", dict(r=4, target_modules=LIST), f'"{key}" is in use', changes={key: value})
for name in ("lm_head", "embed_tokens"):
    adapter_row(f"adapter of {name}", dict(r=4, target_modules=["q_proj", name]), f"{name}, which is not supported")


for kind in ("eva", "lora_ga"):
    adapter_row(f"adapter, {kind}", dict(r=4, target_modules=LIST), changes=dict(init_lora_weights=kind))


@row("adapter and a whole model", "a whole model")
def _(path):
    write_adapter(path, write_model(path + "_base", QWEN2), dict(r=4, target_modules=LIST))
    shutil.copy(path + "_base/model.safetensors", path)
    return path


@row("adapter_model.bin", "convert it")
def _(path):
    write_adapter(path, write_model(path + "_base", QWEN2), dict(r=4, target_modules=LIST))
    torch.save(load_file(path + "/adapter_model.safetensors"), path + "/adapter_model.bin")
    os.remove(path + "/adapter_model.safetensors")
    return path


@row("adapter without its base", "which is not a model folder on this machine")
def _(path):
    write_adapter(path, write_model(path + "_base", QWEN2), dict(r=4, target_modules=LIST))
    shutil.rmtree(path + "_base")
    return path


@row("adapter of another model", "belongs to another model")
def _(path):
    write_adapter(path, write_model(path + "_base", QWEN2), dict(r=4, target_modules=LIST))
    shutil.rmtree(path + "_base")
    write_model(path + "_base", {**QWEN2, "hidden_size": 48})
    return path


@row("adapter of a name of the Hub", "which is not a model folder on this machine")
def _(path):
    write_adapter(path, write_model(path + "_base", QWEN2), dict(r=4, target_modules=LIST))
    edit_json(path, "adapter_config.json", base_model_name_or_path="Qwen/Qwen2-0.5B")
    return path


@row("adapter with its own tokenizer and template", texts=True, chats=True)
def _(path):
    write_adapter(path, write_model(path + "_base", QWEN2), dict(r=4, target_modules=LIST))
    shutil.copy(path + "_base/tokenizer_config.json", path)
    edit_json(path + "_base", "tokenizer.json", path, model=lambda model: {**model, "merges": model["merges"][:9]})
    with open(path + "/chat_template.jinja", "w") as file:
        file.write("{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}\n{% endfor %}")
    return path


# Folders.
def pointer(path, name):
    with open(os.path.join(path, name), "w") as file:
        file.write("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 988097824\n")
    return path


@row("Hugging Face cache")
def _(path):
    snapshot = write_model(path + "/snapshots/0a1b", QWEN2)
    os.makedirs(path + "/refs")
    with open(path + "/refs/main", "w") as file:
        file.write("0a1b")
    return path, snapshot


@row("Hugging Face cache, snapshot not there", "refs/main names no folder")
def _(path):
    write_model(path + "/snapshots/0a1b", QWEN2)
    os.makedirs(path + "/refs")
    with open(path + "/refs/main", "w") as file:
        file.write("ffff")
    return path


@row("shards")
def _(path):
    write_model(path, QWEN2)
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    os.remove(path + "/model.safetensors")
    model.save_pretrained(path, max_shard_size="60KB")
    return path


@row("Git LFS pointer for the weights", "git lfs pull")
def _(path):
    return pointer(write_model(path, QWEN2), "model.safetensors")


@row("Git LFS pointer for config.json", "git lfs pull")
def _(path):
    return pointer(write_model(path, QWEN2), "config.json")


@row("pytorch_model.bin", "safetensors")
def _(path):
    write_model(path, QWEN2)
    torch.save(load_file(path + "/model.safetensors"), path + "/pytorch_model.bin")
    os.remove(path + "/model.safetensors")
    return path


@row("bfloat16 weights")
def _(path):
    return write_model(path, QWEN2, edit=lambda t: [t.update({name: t[name].bfloat16()}) for name in list(t)])


@row("float16 and float64 weights")
def _(path):
    def edit(tensors):
        for i, name in enumerate(tensors):
            tensors[name] = tensors[name].to((torch.float16, torch.float64)[i % 2])

    return write_model(path, QWEN2, edit=edit)


model_row("whole numbers as weights", QWEN2, "has dtype I32", edit=lambda t: t.update({n: t[n].int() for n in t}))
model_row("NaN weights", QWEN2, "not finite", edit=lambda t: t["model.norm.weight"].fill_(math.nan))
model_row("weights whose logits overflow", QWEN2, "logits are not finite", edit=lambda t: [t[n].fill_(3e38) for n in t])
model_row("a missing tensor", QWEN2, "the weights lack", edit=lambda t: t.pop("model.layers.1.mlp.up_proj.weight"))
model_row("a tensor too many", QWEN2, "does not have", edit=lambda t: t.update({"model.layers.9.mlp.a": torch.zeros(2)}))
model_row("a tensor of another shape", QWEN2, "has shape", edit=lambda t: t.update({"model.norm.weight": torch.ones(31)}))


@row("truncated weights", "truncated")
def _(path):
    write_model(path, QWEN2)
    with open(path + "/model.safetensors", "r+b") as file:
        file.truncate(os.path.getsize(path + "/model.safetensors") - 1000)
    return path


@row("an index of shards that are not there", "is not in the folder")
def _(path):
    write_model(path, QWEN2)
    os.remove(path + "/model.safetensors")
    with open(path + "/model.safetensors.index.json", "w") as file:
        json.dump({"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}}, file)
    return path


# Tokenizers. Name: folder in tests/golden/tokenizer, tokenizer_config.json if that has none, the model's config.json.
TRAITS = {"clean_up_tokenization_spaces": False, "model_max_length": 8192}
FORMS = {
    "qwen": ("tiny/qwen", dict(tokenizer_class="Qwen2Tokenizer", bos_token=None, eos_token="<|im_end|>", pad_token="<|endoftext|>"), QWEN2),
    "smollm2": (
        "tiny/smollm",
        dict(tokenizer_class="GPT2Tokenizer", bos_token="<|im_start|>", eos_token="<|im_end|>", unk_token="<|endoftext|>"),
        LLAMA,
    ),
    "gpt2": ("tiny/gpt2", dict(tokenizer_class="GPT2Tokenizer", eos_token="<|endoftext|>"), LLAMA),
    "llama3": ("released/llama32", None, LLAMA),
    "r1": ("released/r1_qwen", None, QWEN2),
    "llama2": ("released/llama2", None, LLAMA),
    "mistral": ("released/mistral", None, MISTRAL),
    # As newer models have it: every step stands in tokenizer.json.
    "bpe": ("tiny/llama3", dict(tokenizer_class="PreTrainedTokenizerFast", bos_token="<s>", eos_token="</s>"), LLAMA),
}


def write_form(path, form, config=None, edit=None, template=None, inline=False, markers=True, **traits):
    """A folder with a tokenizer of FORMS. `edit` changes tokenizer.json, `traits` tokenizer_config.json. The marks that
    `template` writes become tokens (unless `markers` is false); `inline`: it stands in tokenizer_config.json."""
    source, own, family = FORMS[form]
    with open(TOKENIZER_DATA[0] / source / "tokenizer.json") as file:
        tokenizer = json.load(file)
    if own is None:
        with open(TOKENIZER_DATA[0] / source / "tokenizer_config.json") as file:
            own = json.load(file)
    own = {**own, **traits} if "added_tokens_decoder" in own else {**own, **TRAITS, **traits}
    ids = {**tokenizer["model"]["vocab"], **{token["content"]: token["id"] for token in tokenizer["added_tokens"]}}
    wanted = [own.get(key) for key in ("bos_token", "eos_token")]
    if template and markers:
        marks = r"<\|[^|<>\s'\"]+\|>|<｜[^｜<>]+｜>|<\|[A-Z_]+\|>|\[/?[A-Z_]{3,24}\]|</?[a-z_]{3,24}>|<\|/?[a-z]+>"
        wanted += sorted(set(re.findall(marks, template)))
    for content in wanted:
        if isinstance(content, str) and content not in ids:
            ids[content] = len(ids)
            flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False)
            special = content[:2] in ("<|", "<｜", "<s", "</") and not re.fullmatch("</?[a-z_]{3,}>", content)
            token = {"content": content, **flags, "special": special or content[0] == "["}
            tokenizer["added_tokens"].append({"id": ids[content], **token})
            if "added_tokens_decoder" in own:
                own["added_tokens_decoder"][str(ids[content])] = token
    if edit:
        tokenizer = edit(tokenizer) or tokenizer
    ends = own.get("eos_token")
    ends = ids.get(ends["content"] if isinstance(ends, dict) else ends)
    sizes = {"vocab_size": max(ids.values()) + 4, "max_position_embeddings": 8192}  # a system prompt has 4,846 tokens
    write_model(path, {**family, **(config or {}), **sizes, "eos_token_id": ends})
    for name in ("chat_template.jinja", "special_tokens_map.json"):
        if os.path.exists(os.path.join(path, name)):
            os.remove(os.path.join(path, name))
    if template and not inline:
        with open(os.path.join(path, "chat_template.jinja"), "w", newline="") as file:
            file.write(template)
    save_json(path, "tokenizer.json", tokenizer)
    save_json(path, "tokenizer_config.json", {**own, **({"chat_template": template} if template and inline else {})})
    return path


def tokenizer_row(name, form, refusal=None, config=None, edit=None, note=None, **traits):
    def make(path):
        return write_form(path, form, config, edit, **traits)

    ROWS.append((name, make, refusal, dict(texts=True, **({"note": note} if note else {}))))


def post(*names):
    """A TemplateProcessing of these special tokens around the text, which is A."""
    ids = {"<s>": 1, "</s>": 2}
    pieces = [{"SpecialToken" if name in ids else "Sequence": {"id": name, "type_id": 0}} for name in names]
    tokens = {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in ids}
    pair = [*pieces, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": pieces, "pair": pair, "special_tokens": tokens}


def setting(*keys, **changes):
    """An edit of tokenizer.json: values of the object that `keys` lead to."""

    def edit(tokenizer):
        for key in keys:
            tokenizer = tokenizer[key]
        tokenizer.update(changes)

    return edit


def other_model(kind):
    """tokenizer.json of another kind of model, as the library writes it."""
    from tokenizers import Tokenizer, models

    pieces = ["<unk>", "<s>", "</s>", "a", "b", "ab"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    made = {
        "Unigram": lambda: models.Unigram([(piece, -float(i)) for i, piece in enumerate(pieces)], 0, False),
        "WordPiece": lambda: models.WordPiece(vocabulary, unk_token="<unk>"),
        "WordLevel": lambda: models.WordLevel(vocabulary, unk_token="<unk>"),
    }[kind]()
    return lambda tokenizer: json.loads(Tokenizer(made).to_str())


tokenizer_row("byte-level BPE, Qwen", "qwen", add_prefix_space=False, errors="replace", split_special_tokens=False)
tokenizer_row("byte-level BPE, Qwen3", "qwen", config=QWEN3, add_bos_token=False)
tokenizer_row("byte-level BPE, Llama 3", "llama3")
tokenizer_row("byte-level BPE, Llama 3 of the class of Llama 2", "llama3", tokenizer_class="LlamaTokenizerFast")
tokenizer_row("byte-level BPE, DeepSeek R1 distilled", "r1")
tokenizer_row("byte-level BPE, DeepSeek R1 distilled, Llama", "r1", config=LLAMA)
tokenizer_row("byte-level BPE, SmolLM2", "smollm2")
tokenizer_row("byte-level BPE, SmolLM2 by tokenizer.json", "smollm2", tokenizer_class="PreTrainedTokenizerFast")
tokenizer_row("byte-level BPE, GPT-2", "gpt2", bos_token="<|endoftext|>", unk_token="<|endoftext|>")
tokenizer_row("byte-level BPE, GPT-2, prefix space", "gpt2", add_prefix_space=True)
tokenizer_row("byte_fallback, Llama 2", "llama2")
tokenizer_row("byte_fallback, Llama 2, legacy", "llama2", legacy=True)
tokenizer_row("byte_fallback, Llama 2, no prefix space", "llama2", add_prefix_space=False)
tokenizer_row("byte_fallback, Llama 2 by tokenizer.json", "llama2", tokenizer_class="PreTrainedTokenizerFast")
tokenizer_row("byte_fallback, Mistral", "mistral")
tokenizer_row("byte_fallback, Mistral's in a Llama", "mistral", config=dict(architectures=["LlamaForCausalLM"], model_type="llama"))
tokenizer_row("add_eos_token", "llama2", add_eos_token=True)
FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}
tokenizer_row("tokens after a text", "mistral", "post_processor", edit=setting(post_processor=post("<s>", "A", "</s>")))
for kind in ("BertProcessing", "RobertaProcessing"):
    step = {"type": kind, "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": True, "add_prefix_space": False}
    tokenizer_row(kind, "mistral", kind, edit=setting(post_processor=step))
for kind in ("Unigram", "WordPiece", "WordLevel"):
    tokenizer_row(kind, "bpe", kind, edit=other_model(kind))
tokenizer_row("dropout", "bpe", "dropout", edit=setting("model", dropout=0.1))
for kind in ("continuing_subword_prefix", "end_of_word_suffix"):
    tokenizer_row(kind, "bpe", kind, edit=setting("model", **{kind: "##"}))
tokenizer_row("split_special_tokens", "qwen", "split_special_tokens", split_special_tokens=True)
for kind in ("CodeLlama", "GPTNeoX", "Gemma", "Cohere"):
    tokenizer_row(f"{kind}Tokenizer", "bpe", f"is {kind}Tokenizer", tokenizer_class=f"{kind}Tokenizer")
for style in ("added_tokens", "digits_together", "gpt2_prefix", "inverted", "merged", "removed"):
    FORMS[style] = (f"tiny/{style}", {**FAST, "eos_token": "<|im_end|>"}, LLAMA)
    tokenizer_row(f"steps of tokenizer.json, {style}", style)
for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase"):
    tokenizer_row(f"normalizer {kind}", "bpe", edit=setting(normalizer={"type": kind}))
tokenizer_row("normalizer Strip", "bpe", edit=setting(normalizer={"type": "Strip", "strip_left": True, "strip_right": True}))


@row("tokenizer.model alone", "needs the tokenizer.json")
def _(path):
    write_form(path, "llama2")
    os.remove(path + "/tokenizer.json")
    with open(path + "/tokenizer.model", "wb") as file:
        file.write(b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02")
    return path


@row("no end token", texts=True)
def _(path):
    write_form(path, "bpe", eos_token=None)
    edit_json(path, "config.json", eos_token_id=None)
    return path


@row("several end tokens", texts=True)
def _(path):
    write_form(path, "llama3")
    save_json(path, "generation_config.json", {"eos_token_id": list(range(481, 487)) + list(range(40))})
    return path


# Chat templates: model, file, form of the tokenizer, further options of write_form.
TEMPLATES = []  # folders, by main


class NotTried(Exception):
    pass


def find_template(name):
    for folder in TEMPLATES:
        if found := sorted(pathlib.Path(folder).rglob(name)):
            return found[0].read_text()
    raise NotTried(f"no {name} in TRL and --templates")


def template_row(name, file, form="bpe", refusal=None, **options):
    def make(path):
        return write_form(path, form, template=find_template(file), **options)

    ROWS.append(("template, " + name, make, refusal, dict(chats=True)))


QWEN3_MODEL = dict(config=QWEN3)
MISTRAL_MODEL = dict(config=MISTRAL)
OLD = dict(inline=True)
template_row("ChatML", "chatml.jinja", "qwen", **OLD)
template_row("Qwen2", "qwen2.jinja", "qwen", **OLD)
template_row("Qwen2.5", "qwen2_5.jinja", "qwen", **OLD)
template_row("Qwen3, first", "qwen3_first.jinja", "qwen", **OLD, **QWEN3_MODEL)
template_row("Qwen3", "qwen3.jinja", "qwen", **QWEN3_MODEL)
template_row("Qwen3 2507", "qwen3_instruct_2507.jinja", "qwen", **QWEN3_MODEL)
template_row("Qwen3 VL", "qwen3_vl.jinja", "qwen", **QWEN3_MODEL)
template_row("Qwen3 Coder", "Qwen3-Coder.jinja", "qwen", **QWEN3_MODEL)
template_row("QwQ", "Qwen-QwQ-32B.jinja", "qwen", **OLD)
template_row("Llama 2", "llama-2-chat.jinja", "llama2", **OLD)
template_row("Llama 3", "llama3.jinja", "llama3", **OLD)
template_row("Llama 3.1", "llama3_1.jinja", "llama3", **OLD)
template_row("Llama 3.2", "llama3_2.jinja", "llama3", **OLD)
template_row("Llama 3.3", "meta-llama-Llama-3.3-70B-Instruct.jinja", "llama3", **OLD)
template_row("Mistral Nemo", "mistralai-Mistral-Nemo-Instruct-2407.jinja", **OLD, **MISTRAL_MODEL)
template_row("Mistral Small", "Mistral-Small-3.2-24B-Instruct-2506.jinja", **MISTRAL_MODEL)
template_row("Ministral", "mistralai-Ministral-3-14B-Reasoning-2512.jinja", **MISTRAL_MODEL)
template_row("Devstral", "unsloth-mistral-Devstral-Small-2507.jinja", **MISTRAL_MODEL)
template_row("DeepSeek R1 distilled", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja", "r1", **OLD)
template_row("DeepSeek V3", "deepseekv3.jinja", "r1", **OLD, config=LLAMA)
template_row("DeepSeek V3.1", "deepseek-ai-DeepSeek-V3.1.jinja", "r1", config=LLAMA)
template_row("Kimi K2", "Kimi-K2-Instruct.jinja")
template_row("GLM 4.5", "glm4moe.jinja")
template_row("GLM 4.6", "GLM-4.6.jinja")
template_row("GLM 4.7", "GLM-4.7-Flash.jinja")
template_row("Phi 3", "phi3.jinja", "llama2", **OLD)
template_row("Phi 3.5", "phi3_5.jinja", "llama2", **OLD)
template_row("Gemma", "gemma.jinja", "mistral", **OLD)
template_row("Granite 3.0", "granite-3.0-instruct.jinja", "smollm2", **OLD)
template_row("Granite 3.3", "ibm-granite-granite-3.3-2B-Instruct.jinja", "smollm2")
template_row("Cohere", "cohere.jinja")
template_row("Cohere 2", "cohere2.jinja")
template_row("Zephyr", "zephyr.jinja", "mistral", **OLD, markers=False)
template_row("Vicuna", "vicuna.jinja", "llama2", **OLD)
template_row("gpt-oss", "gptoss.jinja")
template_row("Nemotron", "nemotron_3_nano.jinja")
template_row("LFM2", "lfm2.jinja")
template_row("SmolLM2", "smollm2.jinja", "smollm2", **OLD)
template_row("SmolLM3", "HuggingFaceTB-SmolLM3-3B.jinja", "llama3")
template_row("Seed-OSS", "ByteDance-Seed-OSS.jinja")
template_row("from_json", "deepseek-ai-DeepSeek-V3.2.jinja", "r1", "from_json")


@row("template, Hermes, a list of templates", chats=True)
def _(path):
    tools = find_template("NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja")
    write_form(path, "llama3", template=tools, inline=True)
    named = [{"name": "default", "template": find_template("chatml.jinja")}, {"name": "tool_use", "template": tools}]
    edit_json(path, "tokenizer_config.json", chat_template=named)
    return path


@row("template, none", "has no chat_template.jinja", line={"messages": [{"role": "user", "content": "q"}]})
def _(path):
    return write_form(path, "qwen")


def check(host, rows, directory):
    failed, not_tried = 0, 0
    width = max(len(name) for name, *_ in rows) + 2
    for number, (name, make, refusal, options) in enumerate(rows):
        path = os.path.join(directory, f"row{number}")
        try:
            made = make(path)
            folder, reference = made if isinstance(made, tuple) else (made, made)
            if refusal is None:
                prompts = None
                parts = [compare_texts(host, folder)] if options.get("texts") else []
                if options.get("chats"):
                    part, prompts = compare_chats(host, folder)
                    parts.append(part)
                lengths, texts = options.get("lengths", (60, 7)), bool(parts)
                most = compare(host, folder, reference, lengths, prompts=prompts, texts=texts)
                result = ", ".join(["equal", *parts, f"within {most:.1e}"])
                if "note" in options:
                    _, errors = run(host, "generate", folder, [{"prompt_ids": [5]}], "--max-new-tokens", "1")
                    assert options["note"] in errors, f"no line with {options['note']!r}: {errors}"
            else:
                line = options.get("line", {"prompt_ids": list(range(3, 63)), "completion_ids": [4, 5]})
                output, errors = run(host, "generate" if "line" in options else "score", folder, [line])
                assert output is None, f"accepted: {output}"
                assert refusal in errors, f"no {refusal!r} in: {errors.strip()}"
                result = "refused: " + errors.strip().replace(directory, "DIR").splitlines()[-1][:150]
        except NotTried as reason:
            not_tried += 1
            result = f"not tried: {reason}"
        except AssertionError as error:
            failed += 1
            result = f"WRONG: {error}"
        print(f"{name:{width}}{result}", flush=True)
        for left in pathlib.Path(directory).glob(f"row{number}*"):
            shutil.rmtree(left)
    return failed, not_tried


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("host")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--templates", action="append", default=[])
    options = parser.parse_intermixed_args()
    trl = importlib.util.find_spec("trl")
    TEMPLATES.append(TOKENIZERS / "templates")
    TEMPLATES.extend([pathlib.Path(trl.origin).parent / "chat_templates"] if trl else [])
    TEMPLATES.extend(options.templates)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    rows = [row for row in ROWS if not options.names or any(name in row[0] for name in options.names)]
    with tempfile.TemporaryDirectory() as directory, unpacked("tokenizer") as data:
        TOKENIZER_DATA.append(data)
        failed, not_tried = check(os.path.abspath(options.host), rows, directory)
    print(f"{len(rows) - failed - not_tried} of {len(rows)} rows as expected, {failed} wrong, {not_tried} not tried")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
