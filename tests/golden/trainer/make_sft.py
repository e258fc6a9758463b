"""Writes sft.json: a supervised warm start of the bigram policy of make_updates.py, done by PyTorch alone.

    venv/bin/python make_sft.py

Loss: torch.nn.functional.cross_entropy over the completions' tokens of a batch, prompts ignored; AdamW, cosine schedule with
warm-up, clipping. Batches are consecutive pairs, the file starting again at its end.
"""

import json
import math
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from pack import packed  # noqa: E402

torch.set_default_dtype(torch.float64)
VOCABULARY, PAIRS, BATCH, STEPS, PEAK, WARMUP = 13, 10, 4, 7, 3e-2, 2


def main():
    generator = torch.Generator().manual_seed(2)
    before = [torch.randn(VOCABULARY, VOCABULARY, generator=generator).float().double(),
              torch.randn(VOCABULARY, generator=generator).float().double()]
    table, bias = (value.clone().requires_grad_() for value in before)
    samples = []
    for _ in range(PAIRS):
        draw = lambda low, high: torch.randint(0, VOCABULARY, (int(torch.randint(low, high, (1,), generator=generator)),),  # noqa: E731
                                               generator=generator).tolist()
        samples.append({"prompt_ids": draw(1, 5), "completion_ids": draw(1, 8)})
    optimizer = torch.optim.AdamW([{"params": [table], "weight_decay": 0.05}, {"params": [bias], "weight_decay": 0.0}], lr=1.0)
    rows = []
    for step in range(STEPS):
        batch = [samples[(step * BATCH + i) % PAIRS] for i in range(BATCH)]
        width = max(len(s["prompt_ids"]) + len(s["completion_ids"]) for s in batch)
        inputs = torch.zeros(BATCH, width - 1, dtype=torch.long)
        labels = torch.full((BATCH, width - 1), -100)
        for row, s in enumerate(batch):
            ids = torch.tensor(s["prompt_ids"] + s["completion_ids"])
            inputs[row, : len(ids) - 1] = ids[:-1]
            labels[row, len(s["prompt_ids"]) - 1 : len(ids) - 1] = ids[len(s["prompt_ids"]) :]
        loss = torch.nn.functional.cross_entropy((table[inputs] + bias).flatten(0, 1), labels.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_([table, bias], 0.5)
        progress = max(step - WARMUP, 0) / (STEPS - WARMUP)
        rate = PEAK * (step + 1) / WARMUP if step < WARMUP else PEAK * 0.5 * (1 + math.cos(math.pi * progress))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        rows.append({"loss": loss.item(), "grad_norm": norm.item(), "learning_rate": rate})
    document = dict(batch_size=BATCH, steps=STEPS, learning_rate=PEAK, warmup_steps=WARMUP, samples=samples, rows=rows,
                    before=[value.flatten().tolist() for value in before],
                    after=[value.detach().flatten().tolist() for value in (table, bias)])
    with packed("trainer") as folder:
        (folder / "sft.json").write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
