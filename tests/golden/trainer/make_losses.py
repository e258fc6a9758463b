"""Writes losses.json: losses, their gradients by the log-probabilities, and advantages, as TRL's own code computes them.

    python3 -m venv venv && venv/bin/pip install torch 'trl==1.16.*'
    venv/bin/python make_losses.py

GRPOTrainer._compute_loss and ._generate_and_score_completions run unchanged; the trainer object around them is a stub that
holds the settings and hands out fixed log-probabilities and rewards instead of a model's. Everything is in float64.
TRL has k3 without a clamp only; the cases of k1, k2 and kl_clamp add those terms to TRL's loss without KL,
differentiated by PyTorch.
"""

import collections
import itertools
import json
import math
import pathlib
import sys
from types import SimpleNamespace

import torch
import trl
from trl import GRPOTrainer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from pack import packed  # noqa: E402

torch.set_default_dtype(torch.float64)
SEQUENCES, TOKENS, GENERATIONS = 6, 7, 3
LENGTHS = [7, 3, 5, 1, 6, 4]
MAX_COMPLETION_LENGTH = 9


class Accelerator:
    """What the trainer asks of accelerate when it is alone."""

    num_processes = 1
    process_index = 0
    device = torch.device("cpu")
    is_main_process = True

    def gather(self, tensor):
        return tensor

    def reduce(self, tensor, reduction):
        return tensor


def stub(**settings):
    """A GRPOTrainer as far as the two methods look into it."""
    args = dict(delta=None, use_bias_correction_kl=False, steps_per_generation=1, gradient_accumulation_steps=1,
                per_device_train_batch_size=SEQUENCES, gradient_checkpointing_kwargs=None)
    own = dict(
        model=SimpleNamespace(training=True), accelerator=Accelerator(), aux_loss_enabled=False, top_entropy_quantile=1.0,
        off_policy_mask_threshold=None, importance_sampling_level="token", beta=0.0, loss_type="grpo", epsilon_low=0.2,
        epsilon_high=0.28, use_vllm=False, vllm_importance_sampling_correction=False, current_gradient_accumulation_steps=1,
        max_completion_length=MAX_COMPLETION_LENGTH, _entropy_bonus_enabled=False,
        _metrics={"train": collections.defaultdict(list)})
    for key, value in settings.items():
        (args if key in args else own)[key] = value
    return SimpleNamespace(args=SimpleNamespace(**args), **own)


def make_inputs(generator):
    mask = torch.zeros(SEQUENCES, TOKENS, dtype=torch.long)
    for row, length in enumerate(LENGTHS):
        mask[row, :length] = 1
    policy = -3 * torch.rand(SEQUENCES, TOKENS, generator=generator)
    return {
        "mask": mask,
        "policy": policy,
        "old": policy + 0.4 * torch.randn(SEQUENCES, TOKENS, generator=generator),
        "reference": policy + 0.5 * torch.randn(SEQUENCES, TOKENS, generator=generator),
        "correction": torch.rand(SEQUENCES, TOKENS, generator=generator) + 0.5,
    }


def loss_of(inputs, advantages, masked_row, on_policy, corrected, kl, **settings):
    """TRL's loss, its gradient and its metrics for one case; `kl` is (estimator, beta, clamp or None)."""
    mask = inputs["mask"].clone()
    if masked_row is not None:
        mask[masked_row] = 0
    leaf = inputs["policy"].clone().requires_grad_()
    estimator, beta, clamp = kl
    own_kl = estimator in ("k1", "k2") or clamp is not None
    trainer = stub(beta=0.0 if own_kl else beta, use_vllm=corrected, vllm_importance_sampling_correction=corrected,
                   **settings)
    trainer._get_per_token_logps_and_entropies = lambda *a, **k: (leaf, torch.zeros_like(leaf), None)
    batch = {
        "prompt_ids": torch.zeros(SEQUENCES, 2, dtype=torch.long),
        "prompt_mask": torch.ones(SEQUENCES, 2, dtype=torch.long),
        "completion_ids": torch.zeros(SEQUENCES, TOKENS, dtype=torch.long),
        "completion_mask": mask,
        "advantages": advantages,
        "num_items_in_batch": mask.sum() * trainer.args.steps_per_generation,
        "ref_per_token_logps": inputs["reference"],
    }
    if not on_policy:
        batch["old_per_token_logps"] = inputs["old"]
    if corrected:
        batch["importance_sampling_ratio"] = inputs["correction"]
    loss = GRPOTrainer._compute_loss(trainer, trainer.model, batch)
    metrics = {name: values[0] for name, values in trainer._metrics["train"].items() if name != "entropy"}
    if own_kl:
        # The same reduction, of beta * KL alone: TRL's for a token loss x is its loss with advantage -1 and ratio 1 times x.
        difference = leaf - inputs["reference"]
        term = {"k1": difference, "k2": difference**2 / 2, "k3": torch.exp(-difference) + difference - 1}[estimator]
        if clamp is not None:  # below -clamp, the tangent there
            value = {"k1": -clamp, "k2": clamp**2 / 2, "k3": math.exp(clamp) - clamp - 1}[estimator]
            slope = {"k1": 1, "k2": -clamp, "k3": 1 - math.exp(clamp)}[estimator]
            term = torch.where(difference < -clamp, value + slope * (difference + clamp), term)
        if settings["use_bias_correction_kl"]:
            old = leaf.detach() if on_policy else inputs["old"]
            ratio = leaf - old
            if settings["importance_sampling_level"] == "sequence":
                ratio = ((ratio * mask).sum(-1) / mask.sum(-1).clamp(min=1)).unsqueeze(-1)
            term = term * torch.exp(ratio)
        lengths = mask.sum(-1, keepdim=True).clamp(min=1)
        weight = {
            "grpo": 1 / (SEQUENCES * lengths),
            "bnpo": 1 / mask.sum(),
            "dr_grpo": torch.tensor(1 / (SEQUENCES * MAX_COMPLETION_LENGTH)),
            "dapo": 1 / mask.sum(),
            "cispo": 1 / mask.sum(),
        }[settings["loss_type"]]
        loss = loss + beta * (weight * mask * term).sum()
        metrics["kl"] = ((term * mask).sum() / mask.sum()).item()
    loss.backward()
    return loss.item(), leaf.grad, metrics


def advantages_of(rewards, scale):
    """TRL's advantages of rewards in groups of GENERATIONS consecutive samples."""
    ids = [[5] * 3 for _ in rewards]
    trainer = stub(
        environment_factories=None, environments=None, tools=None, pad_to_multiple_of=None, mask_truncated_completions=False, num_iterations=1,
        _tokenizer=SimpleNamespace(pad_token_id=0), eos_token_ids=[1], num_generations=GENERATIONS, scale_rewards=scale,
        _is_vlm=False, ref_model=None, multi_objective_aggregation="sum_then_normalize",
        reward_weights=torch.ones(1), reward_func_names=["reward"], log_multimodal=False,
        _logs={"prompt": [], "completion": [], "rewards": collections.defaultdict(list), "advantages": [],
               "extra": collections.defaultdict(list), "images": []},
        _pending_extra_logs={}, _pending_metrics={})
    trainer.model.is_gradient_checkpointing = False
    trainer._generate = lambda prompts: (ids, ids, None, ["x"] * len(ids), None, {}, None, [])
    trainer._calculate_rewards = lambda *a: rewards.unsqueeze(1)
    output = GRPOTrainer._generate_and_score_completions(trainer, [{"prompt": "x"} for _ in ids])
    metrics = {name: values[0] for name, values in trainer._metrics["train"].items()}
    return output["advantages"], {name: metrics[name] for name in ("reward", "reward_std", "frac_reward_zero_std")}


def rows(tensor, mask):
    """A row a sequence, of its own tokens only."""
    return [[float(f"{v:.17g}") for v in row[: int(m.sum())]] for row, m in zip(tensor, mask)]


def main():
    generator = torch.Generator().manual_seed(0)
    inputs = make_inputs(generator)
    rewards = torch.tensor([1.3, -0.5, 0.3, 2.0, 2.0, 2.0])  # the second group has no variance
    all_advantages, document = {}, {"trl": trl.__version__, "torch": torch.__version__.split("+")[0]}
    document["max_completion_length"] = MAX_COMPLETION_LENGTH
    document["inputs"] = {name: rows(value, inputs["mask"]) for name, value in inputs.items() if name != "mask"}
    document["rewards"] = rewards.tolist()
    document["advantages"] = {}
    for scale in ("group", "batch", "none"):
        advantages, metrics = advantages_of(rewards, scale)
        document["advantages"][scale] = {"values": advantages.tolist(), "metrics": metrics}
        # The loss is also wanted where no advantage is 0, so the group without variance is given some there.
        all_advantages[scale] = advantages + torch.tensor([0, 0, 0, 0.7, -1.1, 0.4])
    document["loss_advantages"] = {scale: values.tolist() for scale, values in all_advantages.items()}

    document["cases"] = []
    kls = [("k3", 0.0, False), ("k3", 0.3, False), ("k3", 0.3, True)]
    grid = list(itertools.product(("grpo", "bnpo", "dr_grpo", "dapo", "cispo"), ("token", "sequence"), kls, (None, 1.4),
                                  ("group", "batch", "none"), (None,), (False,), (False,)))
    # What is orthogonal to the scale: k1 and k2, a fully masked row, the on-policy case, the sampler's correction.
    own = [("k1", 0.3, False), ("k2", 0.3, False), ("k1", 0.3, True), ("k2", 0.3, True)]
    grid += itertools.product(("grpo", "bnpo", "dr_grpo", "dapo", "cispo"), ("token", "sequence"), own, (None,), ("group",),
                              (None,), (False,), (False,))
    grid += itertools.product(("grpo", "bnpo", "dr_grpo", "dapo", "cispo"), ("token", "sequence"), kls[1:], (None,),
                              ("group",), (2,), (False,), (False,))
    grid += itertools.product(("grpo", "bnpo", "dr_grpo", "dapo", "cispo"), ("token", "sequence"), kls, (1.4,), ("group",),
                              (None,), (True,), (False,))
    grid += itertools.product(("grpo", "bnpo", "dr_grpo", "dapo", "cispo"), ("token", "sequence"), kls[1:], (1.4,),
                              ("batch",), (None,), (False,), (True,))
    grid = [row + (None,) for row in grid]
    # Log-ratios are about 0.5: 0.1 clamps some tokens of each sequence.
    grid += itertools.product(("grpo", "dapo", "cispo"), ("token", "sequence"), kls[1:] + own, (None,), ("group",), (None,),
                              (False,), (False,), (0.1,))
    for loss_type, level, (estimator, beta, correction), delta, scale, masked_row, on_policy, corrected, clamp in grid:
        if loss_type == "cispo" and delta is not None and not on_policy and not corrected:
            continue  # delta is not part of cispo
        epsilon_high = 1.25 if loss_type == "cispo" else 0.28
        loss, gradient, metrics = loss_of(
            inputs, all_advantages[scale], masked_row, on_policy, corrected, (estimator, beta, clamp), loss_type=loss_type,
            importance_sampling_level=level, delta=delta, use_bias_correction_kl=correction, epsilon_high=epsilon_high)
        case = dict(loss_type=loss_type, level=level, kl=estimator, beta=beta, kl_ratio_correction=correction, delta=delta,
                    scale=scale, masked_row=masked_row, on_policy=on_policy, corrected=corrected, epsilon=0.2,
                    epsilon_high=epsilon_high, loss=loss, gradient=rows(gradient, inputs["mask"]))
        if clamp is not None:
            case["kl_clamp"] = clamp
        if masked_row is None:  # TRL counts masked rows in some of these, which says nothing of the policy
            case["metrics"] = metrics
        document["cases"].append(case)

    # One record a line keeps differences readable.
    head = {key: value for key, value in document.items() if key != "cases"}
    text = json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(case) for case in document["cases"]) + "\n]}\n"
    with packed("trainer") as folder:
        (folder / "losses.json").write_text(text)
    print(f"{len(document['cases'])} cases, {len(text)} bytes")


if __name__ == "__main__":
    main()
