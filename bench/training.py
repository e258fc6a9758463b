#!/usr/bin/env python3
"""A training step of ours and of transformers', alternating: the same random weights, on a GPU.

usage: training.py --bench build/bin/training [--shape qwen2-1.5b] [--rounds 3] [--sequences 16 4] [--adapter 16]
example: bench/training.py --bench build/bin/training > bench/results/h200_training.txt

Needs torch and transformers, for --adapter also peft. A step: log-probabilities under a reference, forward, backward, clipping to
norm 1, fused AdamW on float32 masters. transformers runs with flash attention (sdpa), logits for the completions alone, no padding.
--adapter RANK: a LoRA adapter of all linear layers trains instead of all weights; peft's runs under autocast to bfloat16, and its
reference is the model without it."""
import argparse
import statistics
import subprocess
import time

from policy import make_config, saved


STEPS = 7


def logprobs(model, ids, prompt):
    import torch

    targets = ids[:, prompt:]
    logits = model(input_ids=ids, logits_to_keep=targets.shape[1] + 1, use_cache=False).logits[:, :-1].float()
    return torch.log_softmax(logits, -1).gather(2, targets.unsqueeze(2)).squeeze(2)


def timed(step):
    """Milliseconds of STEPS calls, after two to warm up."""
    import torch

    times = []
    for number in range(STEPS + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        if number >= 2:
            times.append(1e3 * (time.perf_counter() - start))
    return times


def make(shape):
    import torch
    import transformers

    torch.manual_seed(0)
    with torch.device("cuda"):
        return transformers.AutoModelForCausalLM.from_config(
            make_config(shape), dtype=torch.bfloat16, attn_implementation="sdpa")


def transformers_times(shape, sequences, prompt, completion, adapter):
    import torch

    ids = torch.randint(3, 700, (sequences, prompt + completion), device="cuda")
    return timed(adapter_step(make(shape), ids, prompt, adapter) if adapter else whole_step(make(shape), make(shape), ids, prompt))


def whole_step(model, reference, ids, prompt):
    import torch

    reference.eval().requires_grad_(False)
    masters = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.AdamW(masters, lr=1e-6, weight_decay=0.0, fused=True)

    def step():
        with torch.no_grad():
            logprobs(reference, ids, prompt)
        logprobs(model, ids, prompt).mean().backward()
        for master, parameter in zip(masters, model.parameters()):
            master.grad = parameter.grad.float()
        torch.nn.utils.clip_grad_norm_(masters, 1.0)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(list(model.parameters()), masters)
        model.zero_grad(set_to_none=True)

    return step


def adapter_step(model, ids, prompt, rank):
    import peft
    import torch

    model = peft.get_peft_model(model, peft.LoraConfig(r=rank, lora_alpha=32, target_modules="all-linear"))
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-6, weight_decay=0.0, fused=True)

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            with torch.no_grad(), model.disable_adapter():
                logprobs(model, ids, prompt)
            loss = logprobs(model, ids, prompt).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="build/bin/training")
    parser.add_argument("--shape", default="qwen2-0.5b", help="of shapes.json")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sequences", type=int, nargs="+", default=[16, 4])
    parser.add_argument("--adapter", type=int, default=0, help="rank of a LoRA adapter; 0: all weights train")
    options = parser.parse_args()
    folder = saved(make(options.shape))
    name = f"peft, rank {options.adapter}" if options.adapter else "transformers"
    for sequences in options.sequences:
        theirs = []
        for _ in range(options.rounds):
            result = subprocess.run(
                [options.bench, "--device", "cuda", "--shape", options.shape, "--model", folder.name,
                 "--sequences", str(sequences), "--adapter", str(options.adapter)],
                capture_output=True, text=True)
            print((result.stdout or result.stderr).strip(), flush=True)
            theirs += transformers_times(options.shape, sequences, 512, 128, options.adapter)
            import torch
            torch.cuda.empty_cache()
        print(f"{name}, {sequences} x (512 + 128): {statistics.median(theirs):.2f} ms a step "
              f"(least {min(theirs):.2f}, most {max(theirs):.2f})", flush=True)


if __name__ == "__main__":
    main()
