"""Makes small_steps.json: 1,000 AdamW steps of at most a hundred-thousandth of bfloat16 weights, by PyTorch. Needs torch only.

    python tests/golden/trainer/make_small_steps.py

`after` are PyTorch's float32 masters at the end, `rounded` the weights that they give; `without_masters` are the weights of a
run that rounds them to bfloat16 after each step: those never move. Read by tests/trainer/trainer_shared_test.cc.
"""

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from pack import packed  # noqa: E402

STEPS, RATE, DECAY = 1000, 1e-5, 0.01


def train(start, gradient, keep_masters):
    master = start.float().clone().requires_grad_()
    optimizer = torch.optim.AdamW([master], lr=RATE, weight_decay=DECAY)
    for step in range(STEPS):
        # Another size each step, the same sign: 0.5, 1, 1.5, 0.5, ...
        master.grad = gradient * (0.5 * (step % 3 + 1))
        optimizer.step()
        if not keep_masters:
            with torch.no_grad():
                master.copy_(master.bfloat16().float())
    return master.detach()


def main():
    torch.manual_seed(1)
    sign = torch.randint(0, 2, (64,)) * 2.0 - 1
    start = ((1.05 + 0.9 * torch.rand(64)) * sign).bfloat16()
    gradient = torch.randn(64)
    after = train(start, gradient, True)
    result = {
        "steps": STEPS,
        "learning_rate": RATE,
        "weight_decay": DECAY,
        "before": start.float().tolist(),
        "gradient": gradient.tolist(),
        "after": after.tolist(),
        "rounded": after.bfloat16().float().tolist(),
        "without_masters": train(start, gradient, False).tolist(),
    }
    with packed("trainer") as folder:
        (folder / "small_steps.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
