"""Opens what `kgrpo-host export` wrote, as other programs do, and holds it against the run; then takes one step of TRL's
supervised trainer over it, with a model of random weights.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install datasets==4.8.5 trl pyarrow
    /tmp/venv/bin/python tests/golden/store/open_export.py runs/quickstart my_samples

As a test: open_export.py --test BUILD_FOLDER SOURCE_FOLDER. It makes a run of its own, and ends with 77 (skipped) where
`datasets` is missing; without `trl` the step is left out.
"""
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile


def hold_against(run, samples):
    with sqlite3.connect(f"file:{run}/run.sqlite?mode=ro", uri=True) as database:
        for split, rows in samples.items():
            found = database.execute(
                "SELECT suggestion, reward, logprobs FROM rounds WHERE purpose = ? ORDER BY step, trajectory, round",
                (split,),
            ).fetchall()
            assert len(found) == len(rows), (split, len(found), len(rows))
            for (suggestion, reward, logprobs), row in zip(found, rows):
                assert row["completion"] == [{"role": "assistant", "content": suggestion}]
                assert row["reward"] == reward
                assert row["logprobs"] == list(struct.unpack(f"<{len(logprobs) // 4}f", logprobs))
                assert {message["role"] for message in row["prompt"]} <= {"system", "user", "assistant"}
            print(f"{split}: {len(rows)} rows hold what the run holds")


def train_one_step(samples, model, folder):
    """Prompts and completions as TRL's trainers take them: lists of messages. transformers gets the ids of the run's prompts."""
    try:
        import trl
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        print(f"no step of TRL's trainer: {error}")
        return
    tokenizer = AutoTokenizer.from_pretrained(model)
    for row in samples["train"]:
        ids = tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, return_dict=False)
        assert ids == row["prompt_ids"], (row["prompt"], ids, row["prompt_ids"])
    arguments = trl.SFTConfig(output_dir=folder, max_steps=1, per_device_train_batch_size=2, report_to=[], use_cpu=True,
                              save_strategy="no", completion_only_loss=True, bf16=False, fp16=False)
    trainer = trl.SFTTrainer(model=AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model)), args=arguments,
                             train_dataset=samples["train"].select_columns(["prompt", "completion"]),
                             processing_class=tokenizer)
    result = trainer.train()
    assert result.global_step == 1 and result.training_loss > 0, result
    print(f"a step of trl {trl.__version__}: loss {result.training_loss:.3f}")


def make_run(build, source, folder):
    """A short run without a GPU: its folder and what `export` wrote of it."""
    host = os.path.join(build, "bin", "kgrpo-host")
    run, exported = os.path.join(folder, "run"), os.path.join(folder, "samples")
    environment = {**os.environ, "KGRPO_CACHE_DIR": os.path.join(folder, "cache"), "KGRPO_PYTHON": sys.executable}

    def call(*words):
        done = subprocess.run((host,) + words, capture_output=True, text=True, env=environment)
        if "no CUDA toolkit with nvcc was found" in done.stderr:
            print(f"skipped: {done.stderr}")
            sys.exit(77)
        assert done.returncode == 0, f"{words}: {done.stderr}"

    problems = [os.path.join(source, "problems", name) for name in ("swiglu", "row_peaks")]
    settings = (f"output_dir={run}", f"policy.options.model={build}/models/tiny", f"problems.train=[{problems[0]}]",
                f"problems.heldout=[{problems[1]}]", "loop.batch_size=2", "loop.trajectories_per_problem=2", "loop.rounds=2",
                "trainer=[{plugin: trainer_grpo, steps: 2}]", "evaluation.every=2", "evaluation.episodes=1")
    call(os.path.join(source, "configs", "quickstart.yaml"), "--quiet",
         *(word for setting in settings for word in ("--set", setting)))
    call("export", run, "--format", "datasets", "-o", exported)
    call("export", run, "--format", "parquet", "-o", os.path.join(folder, "train.parquet"))
    return run, exported


def main(arguments):
    try:
        import datasets
    except ImportError as error:
        print(f"skipped: {sys.executable} has no datasets ({error})")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        if arguments[0] != "--test":
            run, exported = arguments
            samples = datasets.load_dataset(exported)
            print(samples)
            hold_against(run, samples)
            return
        os.environ["HF_HOME"] = os.path.join(folder, "hf")
        build, source = arguments[1:]
        run, exported = make_run(build, source, folder)
        samples = datasets.load_dataset(exported, cache_dir=os.path.join(folder, "cache"))
        assert set(samples) == {"train", "heldout"}, samples
        hold_against(run, samples)
        table = datasets.Dataset.from_parquet(os.path.join(folder, "train.parquet"), cache_dir=os.path.join(folder, "cache"))
        hold_against(run, {"train": table})
        assert table.features["reward"].dtype == "float64" and table.column_names == samples["train"].column_names
        train_one_step(samples, os.path.join(run, "final"), folder)


if __name__ == "__main__":
    main(sys.argv[1:])
