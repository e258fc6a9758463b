#!/usr/bin/env bash
# Sourced by cluster_test.sh and launchers_test.sh with HOST SOURCE. Sets $host, $source, $scratch (a folder with its own
# cache) and $model, a small model folder. Skips the test if no kernel can be compiled.
# shellcheck disable=SC2034 # used by the scripts that source this file
host=$1
source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
if [ -z "$(command -v nvcc)" ] && [ ! -x /usr/local/cuda/bin/nvcc ] &&
  ! compgen -G "$source/.venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc" >/dev/null; then
  echo "skipped: kernels cannot be compiled without nvcc"
  exit 77
fi
export XDG_CACHE_HOME="$scratch/cache"
model=$source/build/models/tiny
[ -e "$model/tokenizer.json" ] || model=$source/tests/golden/policy/qwen2
