#!/usr/bin/env bash
# Runs configs/cluster.sbatch in a job whose two nodes are this machine. Stopped before its time limit, the job leaves a
# checkpoint and requeues itself; then it runs to the end. Called by ctest: cluster_test.sh HOST SOURCE
# shellcheck disable=SC1091,SC2154 # scratch_run.sh sets host, source, scratch and model
set -euo pipefail
. "$(dirname "$0")/scratch_run.sh"

# What Slurm would give: its commands, and the job's variables.
mkdir bin
cat >bin/scontrol <<'EOF'
#!/usr/bin/env bash
if [ "$1" = requeue ]; then echo "$2" >>requeued; else printf '127.0.0.1\n127.0.0.1\n'; fi
EOF
cat >bin/srun <<'EOF'
#!/usr/bin/env bash
while [ "${1#--}" != "$1" ]; do shift 2; done
exec "$@"
EOF
chmod +x bin/*
export PATH="$scratch/bin:$PATH"
export SLURM_JOB_NODELIST="node[1-2]" SLURM_JOB_ID=$$ KGRPO=$host PIPELINE=run.yaml EVALUATOR=evaluator.yaml RUN=run

cat >run.yaml <<EOF
seed: 3
policy: {plugin: policy_qwen, options: {model: $model, init: random, threads: 1}}
coder: {plugin: coder_offline}
evaluator: {plugin: evaluator_remote, options: {wait_seconds: 60}}
reward: {plugin: reward_speedup}
trainer:
  - {plugin: trainer_sft, steps: 2, suggestions: uniform, episodes: 2, demonstrations_per_step: 4}
  - {plugin: trainer_grpo, steps: 60}
problems: {train: [$source/problems/transpose]}
loop: {batch_size: 2, rounds: 2, workers: 2, sampling: {max_new_tokens: 8}}
prompt: {user: "suggest for {{problem.family}}:"}
checkpoint: {every: 2}
EOF
sed 's/evaluator: .*/evaluator: {plugin: evaluator_sim}/' run.yaml >evaluator.yaml

failed() { echo "FAILED: $1"; cat log; exit 1; }
"$source/configs/cluster.sbatch" >log 2>&1 &
job=$!
until [ -e run/checkpoints/step-4 ]; do
  kill -0 "$job" 2>/dev/null || failed "the job ended early"
  sleep 0.05
done
kill -TERM "$job"
code=0
wait "$job" || code=$?
[ "$code" = 130 ] || failed "stopped in time it ends with code $code"
[ "$(cat requeued)" = "$SLURM_JOB_ID" ] || failed "it asked for no other turn"

"$source/configs/cluster.sbatch" >log 2>&1 || failed "the second turn ended with code $?"
[ -e run/final/model.safetensors ] || failed "there is no model"
[ "$(wc -l <requeued)" = 1 ] || failed "a finished run is put into the queue"
if pgrep -f "serve evaluator.yaml --listen 0.0.0.0:$((20000 + SLURM_JOB_ID % 12000))" >/dev/null; then failed "a server was left behind"; fi

SLURM_JOB_NODELIST="" "$source/configs/cluster.sbatch" >log 2>&1 && failed "it ran outside a job"
grep -q "start it with sbatch" log || failed "it does not say how it is started"
echo "{" >evaluator.yaml
RUN=other "$source/configs/cluster.sbatch" >log 2>&1 && failed "it ran without an evaluator"
grep -q "no node could start an evaluator" log || failed "it does not say that there is no evaluator"
echo "passed"
