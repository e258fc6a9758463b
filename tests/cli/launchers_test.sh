#!/usr/bin/env bash
# Two ranks started by mpirun, torchrun and srun end with the same bits as --ranks 2. A missing launcher is reported and
# left out; without any of the three the test is skipped. Called by ctest: launchers_test.sh HOST SOURCE
# shellcheck disable=SC1091,SC2154 # scratch_run.sh sets host, source, scratch and model
set -euo pipefail
. "$(dirname "$0")/scratch_run.sh"

cat >run.yaml <<END
seed: 3
policy: {plugin: policy_qwen, options: {model: $model, init: random, threads: 1}}
coder: {plugin: coder_offline}
evaluator: {plugin: evaluator_sim}
reward: {plugin: reward_speedup}
trainer:
  - {plugin: trainer_sft, steps: 2, suggestions: uniform, episodes: 2, demonstrations_per_step: 4}
  - {plugin: trainer_grpo, steps: 2}
problems: {train: [$source/problems/transpose]}
loop: {batch_size: 4, rounds: 2, workers: 1, sampling: {max_new_tokens: 8}}
prompt: {user: "suggest for {{problem.family}}:"}
END
timeout 120 "$host" -q run run.yaml --ranks 2 --set output_dir=own

tried=0
same() { # same NAME COMMAND...: the command, which ends with the host, leaves the same weights
  local name=$1
  shift
  tried=$((tried + 1))
  timeout 120 "$@" -q run run.yaml --set "output_dir=$name" >"$name.log" 2>&1 || { echo "$name failed:"; cat "$name.log"; exit 1; }
  cmp own/final/model.safetensors "$name/final/model.safetensors" || { echo "$name: other weights than --ranks 2"; exit 1; }
  echo "$name: the same bits"
}
if command -v mpirun.openmpi >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  same openmpi mpirun.openmpi --oversubscribe -n 2 "$host"
else
  echo "left out: Open MPI's mpirun (openmpi-bin)"
fi
if command -v mpirun.mpich >/dev/null; then same mpich mpirun.mpich -n 2 "$host"; else echo "left out: MPICH's mpirun (mpich)"; fi
torchrun=${TORCHRUN:-$source/.venv/bin/torchrun}
if "$torchrun" --help >/dev/null 2>&1; then
  same torchrun "$torchrun" --no-python --nproc-per-node 2 "$host"
else
  echo "left out: torchrun (TORCHRUN names one whose Python can import torch)"
fi
if timeout 20 srun --ntasks 2 true >/dev/null 2>&1; then same srun srun --ntasks 2 "$host"; else echo "left out: srun (no Slurm here)"; fi
[ "$tried" -gt 0 ] || { echo "skipped: no launcher is installed (openmpi-bin)"; exit 77; }
