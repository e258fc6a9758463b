"""Writes update/: one whole GRPO update of the tiny Qwen2 of this folder, done by transformers and PyTorch.

    python -m venv venv && venv/bin/pip install torch==2.11.0 'transformers==5.17.*' safetensors
    venv/bin/python tests/golden/policy/make_update.py

rollouts.jsonl is what `kgrpo-model update` reads, pipeline.yaml what it is run with, model.safetensors and expected.json
the weights and the row of each optimiser step that must come out. Returns, advantages, the clipped loss with its KL term,
epochs, accumulation and clipping are written out here after the definition in docs/loop.md and docs/grpo.md; gradients are
autograd's, the optimiser is torch.optim.AdamW. Float32, as kgrpo computes it. tests/policy/update_test.cc compares.
"""

import copy
import json
import os

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "update")
GAMMA, EPSILON, BETA, TEMPERATURE = 0.4, 0.2, 0.04, 0.9
EPOCHS, MINI_BATCH, ACCUMULATION, RATE, DECAY, MAX_NORM = 2, 4, 2, 5e-4, 0.1, 2.0
TRAJECTORIES, ROUNDS = 6, 3

PIPELINE = f"""# The update of make_update.py.
name: golden-update
seed: 1
policy:
  plugin: policy_qwen
  options: {{model: tests/golden/policy/qwen2, chat_template: chatml, dtype: float32, threads: 1}}
trainer:
  plugin: trainer_grpo
  steps: 1
  options:
    gamma: {GAMMA}
    advantage_group: batch
    scale_rewards: batch
    loss_type: grpo
    epsilon: {EPSILON}
    beta: {BETA}
    ppo_epochs: {EPOCHS}
    mini_batch_size: {MINI_BATCH}
    gradient_accumulation_steps: {ACCUMULATION}
    learning_rate: {RATE}
    weight_decay: {DECAY}
    max_grad_norm: {MAX_NORM}
coder: {{plugin: coder_offline}}
evaluator: {{plugin: evaluator_sim}}
reward: {{plugin: reward_speedup}}
problems: {{train: [problems/transpose]}}
loop:
  sampling: {{temperature: {TEMPERATURE}, max_new_tokens: 8}}
"""


def logprobs_of(model, sample):
    ids = torch.tensor([sample["prompt_ids"] + sample["completion_ids"]])
    logits = model(ids).logits[0].float() / TEMPERATURE
    begin = len(sample["prompt_ids"])
    return torch.log_softmax(logits[begin - 1 : -1], -1).gather(-1, ids[0, begin:, None])[:, 0]


def make_samples(model, generator):
    def draw(low, high):
        return int(torch.randint(low, high, (1,), generator=generator))

    samples = []
    for trajectory in range(TRAJECTORIES):
        for round_ in range(ROUNDS):
            sample = {
                "prompt_ids": [draw(3, 300) for _ in range(draw(4, 20))],
                "completion_ids": [draw(3, 300) for _ in range(draw(2, 9))],
                "reward": round(0.3 + 3 * float(torch.rand(1, generator=generator)), 3),
                "trajectory": trajectory,
                "round": round_,
                "problem": trajectory % 2,
            }
            with torch.no_grad():
                exact = logprobs_of(model, sample)
            # Some way off the trainer's, so that some ratios are clipped.
            moved = exact + 0.15 * torch.randn(len(exact), generator=generator)
            sample["logprobs"] = [round(value, 5) for value in moved.clamp(max=-1e-3).tolist()]
            samples.append(sample)
    return samples


def advantages_of(samples):
    returns = torch.tensor(
        [
            sum(
                GAMMA ** (later["round"] - sample["round"]) * later["reward"]
                for later in samples
                if later["trajectory"] == sample["trajectory"] and later["round"] >= sample["round"]
            )
            for sample in samples
        ],
        dtype=torch.float64,
    )
    return ((returns - returns.mean()) / (returns.std() + 1e-4)).float()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(7)
    model = AutoModelForCausalLM.from_pretrained(os.path.join(HERE, "qwen2"), dtype=torch.float32)
    model.eval()
    reference = copy.deepcopy(model)
    samples = make_samples(model, generator)
    advantages = advantages_of(samples)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": DECAY},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ],
        lr=RATE, betas=(0.9, 0.999), eps=1e-8,
    )
    size = MINI_BATCH * ACCUMULATION
    rows, clipped = [], 0
    for _ in range(EPOCHS):
        for begin in range(0, len(samples), size):
            window = range(begin, min(begin + size, len(samples)))
            optimizer.zero_grad()
            loss_sum, kl_sum, tokens = 0.0, 0.0, 0
            for i in window:
                new = logprobs_of(model, samples[i])
                with torch.no_grad():
                    difference = logprobs_of(reference, samples[i])
                ratio = torch.exp(new - torch.tensor(samples[i]["logprobs"]))
                unclipped = ratio * advantages[i]
                bounded = ratio.clamp(1 - EPSILON, 1 + EPSILON) * advantages[i]
                kl = torch.exp(difference - new) - (difference - new) - 1
                loss = (-torch.min(unclipped, bounded) + BETA * kl).mean() / len(window)
                loss.backward()
                clipped += int((bounded < unclipped).sum())
                loss_sum += loss.item()
                kl_sum += kl.sum().item()
                tokens += len(new)
            norm = torch.nn.utils.clip_grad_norm_(parameters, MAX_NORM)
            optimizer.step()
            rows.append({"loss": loss_sum, "kl": kl_sum / tokens, "grad_norm": norm.item()})

    os.makedirs(OUT, exist_ok=True)
    with open(os.path.join(OUT, "pipeline.yaml"), "w") as file:
        file.write(PIPELINE)
    with open(os.path.join(OUT, "rollouts.jsonl"), "w") as file:
        file.writelines(json.dumps(sample) + "\n" for sample in samples)
    with open(os.path.join(OUT, "expected.json"), "w") as file:
        json.dump({"steps": rows, "clipped_tokens": clipped}, file, indent=1)
        file.write("\n")
    state = {name: p.detach().contiguous() for name, p in model.named_parameters()}
    save_file(state, os.path.join(OUT, "model.safetensors"), metadata={"format": "pt"})
    print(rows, clipped, "tokens clipped")


if __name__ == "__main__":
    main()
