#!/usr/bin/env bash
# installed_test.sh BUILD SOURCE: checks that an installed tree works in another folder. Judges a kernel, compiles a plugin
# against the headers by pkg-config and another against the support library by CMake, and validates both.
# Exit code 77: a tool that the test needs is not installed.
set -euo pipefail
build=$1 source=$2
for needed in cmake groff ninja pkg-config readelf; do
  command -v "$needed" > /dev/null || { echo "skipped: $needed is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "installed_test: $*" >&2; exit 1; }

for component in runtime development; do
  cmake --install "$build" --component "$component" --prefix "$work/first" > "$work/log" || fail "$(cat "$work/log")"
done
mv "$work/first" "$work/second"
here=$work/second
export KGRPO_CACHE_DIR=$work/cache
unset KGRPO_PLUGIN_PATH

# libtorch alone may be looked for where this machine has it.
while read -r file; do
  if readelf -d "$file" 2> /dev/null | grep -E 'R(UN)?PATH' | grep -qF "$build"; then fail "$file looks for libraries in $build"; fi
done < <(find "$here/bin" "$here/lib" -type f -perm -u+x -o -name '*.so')

"$here/bin/kgrpo-host" plugins list > "$work/list" || fail "plugins list: $(cat "$work/list")"
grep -q reward_speedup "$work/list" || fail "its plugins are not found: $(cat "$work/list")"

# Links of the pages to each other and to the notes.
while IFS=: read -r page link; do
  [ -e "$(dirname "$page")/$link" ] || fail "$page links to $link, which is not installed"
done < <(grep -roE '\]\((\.\./notes/)?[a-z_0-9]+\.md' "$here/share/doc/kgrpo/docs" | sed 's/\](//')

# The man page is the help, and troff understands it.
page=$here/share/man/man1/kgrpo-host.1
sed 's/\\//g' "$page" > "$work/page"
for command in '' 'compare' 'plugins new' 'problems check'; do
  # shellcheck disable=SC2086  # several words
  option=$("$here/bin/kgrpo-host" $command --help | grep -oE -- '--[a-z-]+' | tail -1)
  title=kgrpo-host${command:+ $command}
  grep -qx -- "\.S[SH] $title\|\.B $title" "$work/page" || fail "the man page has no $title"
  grep -q -- "$option" "$work/page" || fail "the man page has no $option of $title"
done
groff -man -Tutf8 -ww -z "$page" 2> "$work/log" || fail "groff: $(cat "$work/log")"
[ ! -s "$work/log" ] || fail "groff: $(cat "$work/log")"

mkdir "$work/plugin"
# shellcheck disable=SC2046  # several words
(cd "$work/plugin" && PKG_CONFIG_PATH="$here/lib/pkgconfig" ${CC:-cc} -std=c11 -Wall -Wextra -Werror -shared -fPIC \
  $(PKG_CONFIG_PATH="$here/lib/pkgconfig" pkg-config --cflags kgrpo) -o reward_c.so "$here/share/kgrpo/examples/reward_c/reward_c.c")
"$here/bin/kgrpo-host" plugins validate "$work/plugin/reward_c.so" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
grep -q ' 0 failed, 0 warnings' "$work/log" || fail "$(cat "$work/log")"

cmake -G Ninja -S "$source/tests/cli/installed_plugin" -B "$work/supported" -Dkgrpo_ROOT="$here" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
cmake --build "$work/supported" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
"$here/bin/kgrpo-host" plugins validate "$work/supported/reward_supported.so" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
grep -q ' 0 failed, 0 warnings' "$work/log" || fail "$(cat "$work/log")"

if [ -z "${CUDA_HOME:-}" ]; then
  nvcc=$(find -L "$source/.venv" -path '*/bin/nvcc' -print -quit 2> /dev/null || true)
  [ -z "$nvcc" ] || export CUDA_HOME=${nvcc%/bin/nvcc}
fi
problem=$here/share/kgrpo/problems/transpose
code=0
(cd "$work" && "$here/bin/kgrpo-host" eval kernel "$problem/reference.cu" --problem "$problem") > "$work/log" 2>&1 || code=$?
if grep -q 'no CUDA toolkit with nvcc was found' "$work/log"; then sed 's/^/skipped: /' "$work/log"; exit 77; fi
[ "$code" = 0 ] || fail "eval: $(cat "$work/log")"
grep -q '^verdict *correct' "$work/log" || fail "eval: $(cat "$work/log")"
head -6 "$work/log"
