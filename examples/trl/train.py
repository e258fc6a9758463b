#!/usr/bin/env python3
"""TRL's GRPOTrainer with kgrpo's evaluator as its reward function.

    kgrpo-host serve &                                # judges; no GPU needed
    pip install torch trl && python3 train.py         # a toy of 30 thousand parameters, under a minute on a CPU
    python3 train.py --model Qwen/Qwen2.5-Coder-0.5B-Instruct --problems matmul softmax_long     # whole kernels

The toy writes two words, a method and a tile size, which a template turns into a kernel for the problem `transpose`; from
random weights it learns in 20 steps which kernel is fast. With --model the completion is the kernel itself: the text of
its last ```-block. What matters for other trainers is `judge`, 8 lines.
"""
import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from kgrpo_client import Client  # noqa: E402

METHODS, TILES = ("direct", "swapped", "shared", "padded"), ("4", "8", "16", "32")

TRANSPOSE = """
__global__ void transpose_kernel(const float* x, float* out, int rows, int cols) {
#if SHARED
  __shared__ float tile[TILE][TILE + PAD];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = x[(size_t)row * cols + col];
  __syncthreads();
  row = blockIdx.y * TILE + threadIdx.x;
  col = blockIdx.x * TILE + threadIdx.y;
  if (row < rows && col < cols) out[(size_t)col * rows + row] = tile[threadIdx.x][threadIdx.y];
#else
  const int row = blockIdx.y * TILE + (SWAPPED ? threadIdx.x : threadIdx.y);
  const int col = blockIdx.x * TILE + (SWAPPED ? threadIdx.y : threadIdx.x);
  if (row < rows && col < cols) out[(size_t)col * rows + row] = x[(size_t)row * cols + col];
#endif
}
extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const dim3 blocks((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  transpose_kernel<<<blocks, dim3(TILE, TILE)>>>(x, out, rows, cols);
}
"""


def kernel_of_words(completion):
    """The toy's kernel; words that name none make text that does not compile."""
    words = completion.split()
    if len(words) != 2 or words[0] not in METHODS or words[1] not in TILES:
        return "#error no kernel is named"
    method, tile = words
    settings = {"TILE": tile, "SHARED": int(method in ("shared", "padded")), "PAD": int(method == "padded"), "SWAPPED": int(method == "swapped")}
    return "".join("#define %s %s\n" % setting for setting in settings.items()) + TRANSPOSE


def kernel_of_block(completion):
    blocks = re.findall(r"```[a-z+]*\n(.*?)```", completion, re.DOTALL)
    return blocks[-1] if blocks else completion


def reward_function(client, kernel_of, device):
    def judge(completions, problem, **_):
        """What TRL calls: a reward a completion; `problem` is a column of the data set."""
        texts = [c if isinstance(c, str) else c[-1]["content"] for c in completions]
        results = client.evaluate_all(
            {"problem": p, "source": kernel_of(t), "devices": device} for p, t in zip(problem, texts))
        return [result.reward() for result in results]

    return judge


def toy():
    """A model of one layer over a vocabulary of words, random weights."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    words = ["<pad>", "<end>", "transpose", *METHODS, *TILES]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>")
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=None))
    return model, fast


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", help="address of a service; several are allowed (default: http://127.0.0.1:8421)")
    parser.add_argument("--device", help="which of the service's devices judges (default: its first)")
    parser.add_argument("--model", help="a model of the Hub or a folder, which writes whole kernels (default: the toy)")
    parser.add_argument("--problems", nargs="+", default=["transpose"], help="with --model: what to train on")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--output", default="runs/trl")
    arguments = parser.parse_args()
    try:
        import torch
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer
    except ImportError as error:
        print("skipped: this example needs torch and trl (pip install torch trl): %s" % error)
        return 77

    torch.manual_seed(0)
    client = Client(arguments.server or "http://127.0.0.1:8421")
    if arguments.model:
        model, tokenizer, kernel_of = arguments.model, None, kernel_of_block
        told = [client.problem(name) for name in arguments.problems]
        rows = [{"problem": p["name"], "prompt": [{"role": "user", "content": "Write a faster CUDA kernel.\n\n%s\n\nThe present one:\n```cuda\n%s```\n"
                                                  "Answer with the whole file in a ```cuda block." % (p["task"], p["source"])}]} for p in told]
    else:
        (model, tokenizer), kernel_of = toy(), kernel_of_words
        rows = [{"problem": "transpose", "prompt": "transpose"}]
    config = GRPOConfig(
        output_dir=arguments.output, max_steps=arguments.steps, num_generations=16, per_device_train_batch_size=16, seed=1,
        max_completion_length=1024 if arguments.model else 2, learning_rate=1e-6 if arguments.model else 0.01, beta=0.0,
        logging_steps=1, save_strategy="no", report_to="none", use_cpu=not torch.cuda.is_available(), bf16=False,
        disable_tqdm=True, lr_scheduler_type="constant")
    trainer = GRPOTrainer(model=model, reward_funcs=reward_function(client, kernel_of, arguments.device), args=config,
                          train_dataset=Dataset.from_list(rows * 64), processing_class=tokenizer)
    trainer.train()
    rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    print("mean reward, first step %.3f, last five steps %.3f" % (rewards[0], sum(rewards[-5:]) / len(rewards[-5:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
