"""Writes updates.json: whole GRPO updates of a tiny policy, done by PyTorch and TRL.

    venv/bin/python make_updates.py        # the environment of make_losses.py

The policy is a bigram model: logits of the next token = table[previous token] + bias. Losses are TRL's _compute_loss,
gradients PyTorch's, clipping torch.nn.utils.clip_grad_norm_, the optimiser torch.optim.AdamW; returns, advantages, epochs,
mini-batches, accumulation and the schedule are written out here. All in float64 (one case: bfloat16 values with float32
masters). The same policy stands in tests/trainer/bigram_policy.cc.
"""

import json
import math

import torch
from make_losses import packed, stub
from trl import GRPOTrainer

torch.set_default_dtype(torch.float64)
VOCABULARY = 13
DEFAULTS = dict(gamma=0.4, advantage_group="batch", leave_one_out=False, idle_baseline=False, scale_rewards="group",
                advantage_cap=0, loss_type="grpo", importance_sampling_level="token", epsilon=0.2, epsilon_high=0.2,
                delta=None, beta=0.04, kl_ratio_correction=False, old_logprobs="behaviour",
                importance_sampling_correction="none", importance_sampling_max=3.0, mask_truncated_completions=False,
                max_completion_length=0, ppo_epochs=2, mini_batch_size=4, gradient_accumulation_steps=2,
                learning_rate=1e-2, lr_scheduler_type="constant", warmup_steps=0, weight_decay=0.0, max_grad_norm=1.0,
                temperature=1.0, updates=1, noise=0.0, dtype="float32", trajectories=5)


def make_policy(generator):
    table = torch.randn(VOCABULARY, VOCABULARY, generator=generator).float().double()
    bias = (0.3 * torch.randn(VOCABULARY, generator=generator)).float().double()
    return [table, bias]


def logprobs_of(policy, sample, temperature):
    table, bias = policy
    previous = torch.tensor([sample["prompt_ids"][-1]] + sample["completion_ids"][:-1])
    logits = (table[previous] + bias) / temperature
    return torch.log_softmax(logits, -1)[torch.arange(len(previous)), torch.tensor(sample["completion_ids"])]


def make_samples(policy, settings, generator):
    samples = []
    for trajectory in range(settings["trajectories"]):
        for round_ in range(4):
            length = int(torch.randint(1, 7, (1,), generator=generator))
            prompt = torch.randint(0, VOCABULARY, (int(torch.randint(1, 4, (1,), generator=generator)),), generator=generator)
            completion = torch.randint(0, VOCABULARY, (length,), generator=generator)
            sample = dict(prompt_ids=prompt.tolist(), completion_ids=completion.tolist(), trajectory=trajectory, round=round_,
                          rounds=4, problem=trajectory % 2, truncated=length == 6,
                          reward=float(f"{float(torch.randn(1, generator=generator)):.3f}"),
                          idle_reward=float(f"{float(torch.rand(1, generator=generator)):.3f}"))
            exact = logprobs_of(policy, sample, settings["temperature"])
            noisy = exact + settings["noise"] * torch.randn(length, generator=generator)
            sample["logprobs"] = noisy.clamp(max=0).float().tolist()
            samples.append(sample)
    return samples


def advantages_of(samples, settings):
    gamma = settings["gamma"]
    values = []
    for sample in samples:
        later = [s for s in samples if s["trajectory"] == sample["trajectory"] and s["round"] >= sample["round"]]
        value = sum(gamma ** (s["round"] - sample["round"]) * s["reward"] for s in later)
        if settings["idle_baseline"]:
            value -= sample["idle_reward"] * sum(gamma**j for j in range(sample["rounds"] - sample["round"]))
        values.append(value)
    values = torch.tensor(values)
    key = {"batch": lambda s: 0, "problem": lambda s: s["problem"], "problem_round": lambda s: (s["problem"], s["round"])}
    groups = [key[settings["advantage_group"]](s) for s in samples]
    result = torch.zeros(len(samples))
    for i, group in enumerate(groups):
        members = [j for j, other in enumerate(groups) if other == group]
        others = [j for j in members if j != i]
        baseline = values[others].mean() if settings["leave_one_out"] else values[members].mean()
        result[i] = values[i] - baseline
        if settings["scale_rewards"] == "group":
            result[i] /= values[members].std() + 1e-4
    if settings["scale_rewards"] == "batch":
        result /= values.std() + 1e-4
    if settings["scale_rewards"] == "rms":
        result /= (result**2).mean().sqrt() + 1e-4
    cap = settings["advantage_cap"]
    return result.clamp(-cap, cap) if cap else result


def rate_of(settings, update, step, steps):
    begin, end = update + step / steps, update + (step + 1) / steps
    warmup, peak = settings["warmup_steps"], settings["learning_rate"]
    if end < warmup - 1e-9:
        return peak * end / warmup
    progress = min(max((begin - warmup) / (settings["updates"] - warmup), 0), 1)
    return {"constant": peak, "linear": peak * (1 - progress),
            "cosine": peak * 0.5 * (1 + math.cos(math.pi * progress))}[settings["lr_scheduler_type"]]


def pad(rows, width):
    return torch.stack([torch.cat([row, row.new_zeros(width - len(row))]) for row in rows])


def loss_of(samples, policy, old, reference, correction, advantages, settings, tokens, micro_batches, window):
    """TRL's loss of one micro-batch, `window` of which make an optimiser step and `micro_batches` the generation batch."""
    width = max(len(s["completion_ids"]) for s in samples)
    mask = pad([torch.ones(len(s["completion_ids"]), dtype=torch.long) for s in samples], width)
    if settings["mask_truncated_completions"]:
        mask = mask * torch.tensor([[0 if s["truncated"] else 1] for s in samples])
    leaf = pad([logprobs_of(policy, s, settings["temperature"]) for s in samples], width)
    corrected = settings["importance_sampling_correction"] != "none"
    trainer = stub(
        loss_type=settings["loss_type"], importance_sampling_level=settings["importance_sampling_level"],
        beta=settings["beta"], epsilon_low=settings["epsilon"], epsilon_high=settings["epsilon_high"],
        delta=settings["delta"], use_bias_correction_kl=settings["kl_ratio_correction"],
        max_completion_length=settings["max_completion_length"], use_vllm=corrected,
        vllm_importance_sampling_correction=corrected, current_gradient_accumulation_steps=window,
        steps_per_generation=micro_batches)
    trainer._get_per_token_logps_and_entropies = lambda *a, **k: (leaf, torch.zeros_like(leaf), None)
    count = len(samples)
    batch = {
        "prompt_ids": torch.zeros(count, 1, dtype=torch.long), "prompt_mask": torch.ones(count, 1, dtype=torch.long),
        "completion_ids": torch.zeros(count, width, dtype=torch.long), "completion_mask": mask, "advantages": advantages,
        "num_items_in_batch": torch.tensor(tokens), "ref_per_token_logps": pad(reference, width),
        "old_per_token_logps": pad(old, width), "importance_sampling_ratio": pad(correction, width)}
    return GRPOTrainer._compute_loss(trainer, trainer.model, batch), trainer._metrics["train"]


def run(name, generator, **changes):
    settings = DEFAULTS | changes
    start = make_policy(generator)
    low_precision = settings["dtype"] == "bfloat16"
    if low_precision:
        start = [value.bfloat16().double() for value in start]
    # `masters` are what AdamW moves; `policy` is what the model computes with.
    masters = [(value.float() if low_precision else value).clone().requires_grad_() for value in start]
    policy = [value.clone().requires_grad_() for value in start]
    samples = make_samples(start, settings, generator)
    optimizer = torch.optim.AdamW(
        [{"params": [masters[0]], "weight_decay": settings["weight_decay"]}, {"params": [masters[1]], "weight_decay": 0.0}],
        lr=1.0, betas=(0.9, 0.999), eps=1e-8)
    rows = []
    for update in range(settings["updates"]):
        advantages = advantages_of(samples, settings)
        with torch.no_grad():
            reference = [logprobs_of(start, s, settings["temperature"]) for s in samples]
            old = [torch.tensor(s["logprobs"]) for s in samples]
            correction = [torch.ones(len(row)) for row in old]
            if settings["old_logprobs"] == "recomputed":
                recomputed = [logprobs_of(policy, s, settings["temperature"]) for s in samples]
                limit = settings["importance_sampling_max"]
                if settings["importance_sampling_correction"] == "token_truncate":
                    correction = [torch.exp(a - b).clamp(max=limit) for a, b in zip(recomputed, old)]
                if settings["importance_sampling_correction"] == "sequence_mask":
                    ratios = [torch.exp((a - b).sum()) for a, b in zip(recomputed, old)]
                    correction = [torch.full((len(b),), float(r if r <= limit else 0)) for r, b in zip(ratios, old)]
                old = recomputed
        tokens = sum(len(s["completion_ids"]) for s in samples
                     if not (settings["mask_truncated_completions"] and s["truncated"]))
        size, window = settings["mini_batch_size"], settings["gradient_accumulation_steps"]
        micro_batches = [list(range(i, min(i + size, len(samples)))) for i in range(0, len(samples), size)]
        windows = [micro_batches[i : i + window] for i in range(0, len(micro_batches), window)]
        steps = settings["ppo_epochs"] * len(windows)
        for step in range(steps):
            total, kl_sum, kl_tokens = 0.0, 0.0, 0
            chosen = windows[step % len(windows)]
            for parameter in policy:
                parameter.grad = None
            for micro_batch in chosen:
                pick = lambda values: [values[i] for i in micro_batch]  # noqa: E731
                loss, metrics = loss_of(pick(samples), policy, pick(old), pick(reference), pick(correction),
                                        advantages[micro_batch], settings, tokens, len(micro_batches), len(chosen))
                loss.backward()
                total += loss.item()
                counted = sum(len(s["completion_ids"]) for s in pick(samples)
                              if not (settings["mask_truncated_completions"] and s["truncated"]))
                if settings["beta"]:
                    kl_sum += metrics["kl"][0] * counted
                    kl_tokens += counted
            for master, parameter in zip(masters, policy):
                master.grad = parameter.grad.to(master.dtype)
            norm = torch.nn.utils.clip_grad_norm_(masters, settings["max_grad_norm"] or math.inf)
            rate = rate_of(settings, update, step, steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            with torch.no_grad():
                for master, parameter in zip(masters, policy):
                    parameter.copy_(master.bfloat16() if low_precision else master)
            row = {"loss": total, "grad_norm": norm.item(), "learning_rate": rate}
            if settings["beta"]:
                row["kl"] = kl_sum / kl_tokens
            rows.append(row)
    return dict(name=name, settings=settings, samples=samples, rows=rows,
                before=[value.flatten().tolist() for value in start],
                after=[value.detach().flatten().tolist() for value in policy])


def main():
    generator = torch.Generator().manual_seed(1)
    cases = [
        run("defaults", generator),
        run("weight_decay_and_clipping", generator, weight_decay=0.1, max_grad_norm=0.05, learning_rate=3e-2),
        run("dapo_cosine_three_updates", generator, loss_type="dapo", epsilon_high=0.28, kl_ratio_correction=True, updates=3,
            lr_scheduler_type="cosine", warmup_steps=1, temperature=0.7, advantage_group="problem", scale_rewards="batch"),
        run("the_recipe", generator, advantage_group="problem", leave_one_out=True, idle_baseline=True, scale_rewards="rms",
            advantage_cap=1.5, beta=0.15, epsilon_high=0.28, mini_batch_size=6, gradient_accumulation_steps=2,
            trajectories=6, updates=2, lr_scheduler_type="linear"),
        run("dr_grpo_sequence_ratio", generator, loss_type="dr_grpo", importance_sampling_level="sequence",
            max_completion_length=8, advantage_group="problem_round", scale_rewards="none", delta=1.5, noise=0.2,
            mask_truncated_completions=True),
        run("bnpo_without_kl", generator, loss_type="bnpo", gradient_accumulation_steps=1, beta=0.0, max_grad_norm=0.0),
        run("cispo_truncated_correction", generator, loss_type="cispo", epsilon_high=1.1, noise=0.6,
            old_logprobs="recomputed", importance_sampling_correction="token_truncate", importance_sampling_max=1.5),
        run("masked_sequence_correction", generator, noise=0.3, old_logprobs="recomputed",
            importance_sampling_correction="sequence_mask", importance_sampling_max=1.8),
        run("bfloat16_masters", generator, dtype="bfloat16", learning_rate=2e-3, updates=8),
    ]
    text = "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"
    with packed("trainer") as folder:
        (folder / "updates.json").write_text(text)
    print(f"{len(cases)} cases, {len(text)} bytes")


if __name__ == "__main__":
    main()
