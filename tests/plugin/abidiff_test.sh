#!/usr/bin/env bash
# Compares the types of the plugin ABI, function signatures included, with the released ones by abidiff (abigail-tools).
#   abidiff_test.sh RELEASED   fails if they differ from the file RELEASED (abi_released.abi in tests/golden/abi.tar.xz); exit
#                              code 77 if abidiff is not installed
#   abidiff_test.sh --write    records the headers' types as released: after a struct was extended at its end, or added
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
abi=$here/../../core/abi
command -v abidiff > /dev/null || { echo "skipped: abidiff is not installed (abigail-tools)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A library with a function for each struct, through which abidiff sees all types.
{
  for header in "$abi"/kgrpo/*.h; do echo "#include <kgrpo/$(basename "$header")>"; done
  sed -n 's/^typedef struct \(\w*\) {$/void use_\1(\1* it); void use_\1(\1* it) { (void)it; }/p' "$abi"/kgrpo/*.h
} > "$work/types.c"
(cd "$work" && ${CC:-cc} -std=c11 -g -O0 -fPIC -shared -I "$abi" types.c -o types.so)

if [ "${1:-}" = --write ]; then
  abidw --no-architecture --no-corpus-path --no-comp-dir-path --no-elf-needed --no-show-locs --out-file "$work/abi_released.abi" "$work/types.so"
  "$here/../golden/pack.py" abi "$work/abi_released.abi"
  exit
fi
code=0
abidiff --no-architecture --no-show-locs "$1" "$work/types.so" || code=$?
if [ "$code" != 0 ]; then
  echo "the ABI differs from abi_released.abi. Only where structs have grown at their end, or are new: $0 --write"
  exit 1
fi
