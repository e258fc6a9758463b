"""Checks that kgrpo-host reads model and adapter folders as transformers and peft do, or refuses them by name.

    python -m venv venv && venv/bin/pip install torch==2.11.0 'transformers==5.24.*' peft==0.21.0 safetensors tokenizers
    venv/bin/python tests/golden/policy/check_folders.py build/bin/kgrpo-host [NAME...]

Makes a tiny random folder for each row of docs/models.md (architecture, rotary positions, head, window, adapter, damage)
in a temporary folder. If it should work, 40 greedy tokens are transformers', and log-probabilities within 1e-4. If not,
kgrpo-host fails, and its message contains the words of the row. NAME: only rows whose name contains it.
"""

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
from make_models import VOCABULARY, make_tokenizer, save_tokenizer
from safetensors.torch import load_file, save_file

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
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


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


def write_config(folder, config):
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file, indent=1)


def write_model(folder, config, edit=None, of=None):
    """A folder with that config.json. `of`: the configuration that the weights are made by, if transformers refuses the
    other. `edit` changes the tensors, a dictionary."""
    os.makedirs(folder)
    write_config(folder, of or config)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder))
    randomize(model, 12)
    tensors = {name: value.detach().contiguous().clone() for name, value in model.named_parameters()}
    if edit:
        edit(tensors)
    write_config(folder, config)
    save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    save_tokenizer(make_tokenizer(), folder)
    return folder


def write_adapter(folder, base, options, edit=None):
    """A PEFT folder with random A and B beside `base`. `edit` changes adapter_config.json, a dictionary."""
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
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as file:
        config = json.load(file)
    config["base_model_name_or_path"] = base
    if edit:
        edit(config)
    with open(path, "w") as file:
        json.dump(config, file, indent=1)
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


def run(host, command, folder, lines, *arguments):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    result = subprocess.run([host, command, folder, *arguments], input=text, text=True, capture_output=True)
    if result.returncode < 0:
        return None, f"{command} ended by signal {-result.returncode}: {result.stderr[-300:]}"
    return ([json.loads(line) for line in result.stdout.splitlines()] if result.returncode == 0 else None), result.stderr


def compare(host, folder, reference, lengths=(60, 7), settings=()):
    """The greatest difference of log-probabilities; raises AssertionError with a message."""
    generator = torch.Generator().manual_seed(3)
    prompts = [torch.randint(3, VOCABULARY, (count,), generator=generator).tolist() for count in lengths]
    written, errors = run(
        host,
        "generate",
        folder,
        [{"prompt_ids": prompt} for prompt in prompts],
        *("--max-new-tokens", str(TOKENS), "--temperature", "0", *settings),
    )
    assert written is not None, errors.strip()
    model = reference_of(reference)
    completions = [torch.randint(3, VOCABULARY, (20,), generator=generator).tolist() for _ in prompts]
    scored, errors = run(
        host,
        "score",
        folder,
        [{"prompt_ids": p, "completion_ids": c} for p, c in zip(prompts, completions, strict=True)],
        *settings,
    )
    assert scored is not None, errors.strip()
    most = 0.0
    for prompt, line, completion, given in zip(prompts, written, completions, scored, strict=True):
        for ids, logprobs, is_greedy in ((line["ids"], line["logprobs"], True), (completion, given["logprobs"], False)):
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1].float()
            if is_greedy:
                assert len(ids) == TOKENS or ids[-1] == 2, f"{len(ids)} tokens"
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


def adapter_row(name, options, refusal=None, base=None, edit=None, **given):
    def make(path):
        return write_adapter(path, write_model(path + "_base", base or QWEN2), options, edit)

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
model_row(
    "quantized", {**QWEN2, "quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantization_config", of=QWEN2
)
model_row("no number of layers", without(QWEN2, "num_hidden_layers"), '"num_hidden_layers" is missing', of=QWEN2)
model_row(
    "qwen2, no number of key heads", without(QWEN2, "num_key_value_heads"), '"num_key_value_heads" (32)', of=QWEN2
)

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
for kind in ("dynamic", "longrope", "su", "mrope"):
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
    {
        **QWEN2,
        "use_sliding_window": True,
        "sliding_window": 32,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    },
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
adapter_row(
    "adapter, excluded names",
    dict(r=4, target_modules="all-linear", exclude_modules=["layers.1.mlp.up_proj", "q_proj"]),
)
adapter_row("adapter, excluded expression", dict(r=4, target_modules=LIST, exclude_modules=r".*\.2\..*v_proj"))
adapter_row("adapter, layers", dict(r=4, target_modules=LIST, layers_to_transform=[0, 2]))
adapter_row("adapter, one layer", dict(r=4, target_modules=LIST, layers_to_transform=1, layers_pattern="layers"))
adapter_row(
    "adapter, rank_pattern",
    dict(r=4, target_modules=LIST, rank_pattern={"q_proj": 2, r"layers\.1.*v_proj": 7, "v_proj": 3}),
)
adapter_row(
    "adapter, rank_pattern, alpha_pattern, rslora",
    dict(
        r=4,
        target_modules=LIST,
        use_rslora=True,
        rank_pattern={"q_proj": 2},
        alpha_pattern={"0.self_attn.q_proj": 32, "down_proj": 1},
    ),
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
        f"adapter, {kind}",
        dict(r=4, target_modules=LIST),
        f'"init_lora_weights" is "{kind}"',
        edit=lambda config, kind=kind: config.update(init_lora_weights=kind),
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
    adapter_row(
        f"adapter, {key}",
        dict(r=4, target_modules=LIST),
        f'"{key}" is in use',
        edit=lambda config, key=key, value=value: config.update({key: value}),
    )
for name in ("lm_head", "embed_tokens"):
    adapter_row(f"adapter of {name}", dict(r=4, target_modules=["q_proj", name]), f"{name}, which is not supported")


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
model_row(
    "a tensor too many", QWEN2, "does not have", edit=lambda t: t.update({"model.layers.9.mlp.a": torch.zeros(2)})
)
model_row(
    "a tensor of another shape", QWEN2, "has shape", edit=lambda t: t.update({"model.norm.weight": torch.ones(31)})
)


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


def check(host, rows, directory):
    failed = 0
    for number, (name, make, refusal, options) in enumerate(rows):
        path = os.path.join(directory, f"row{number}")
        try:
            made = make(path)
            folder, reference = made if isinstance(made, tuple) else (made, made)
            lengths = options.get("lengths", (60, 7))
            if refusal is None:
                result = f"equal, within {compare(host, folder, reference, lengths):.1e}"
                if "note" in options:
                    _, errors = run(host, "generate", folder, [{"prompt_ids": [5]}], "--max-new-tokens", "1")
                    assert options["note"] in errors, f"no line with {options['note']!r}: {errors}"
            else:
                line = {"prompt_ids": list(range(3, 63)), "completion_ids": [4, 5]}
                output, errors = run(host, "score", folder, [line])
                assert output is None, f"accepted: {output}"
                assert refusal in errors, f"no {refusal!r} in: {errors.strip()}"
                result = "refused: " + errors.strip().replace(directory, "DIR").splitlines()[-1][:150]
        except AssertionError as error:
            failed += 1
            result = f"WRONG: {error}"
        print(f"{name}: {result}", flush=True)
    return failed


def main():
    host, names = sys.argv[1], sys.argv[2:]
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    rows = [row for row in ROWS if not names or any(name in row[0] for name in names)]
    with tempfile.TemporaryDirectory() as directory:
        failed = check(os.path.abspath(host), rows, directory)
    print(f"{len(rows) - failed} of {len(rows)} rows as expected")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
