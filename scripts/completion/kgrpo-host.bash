# Completion of kgrpo-host for bash: commands, subcommands and options as their --help lists them, else files.
_kgrpo_host() {
  local word=${COMP_WORDS[COMP_CWORD]} words=() one help
  for one in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $one == -* || ${#words[@]} -eq 2 ]] || words+=("$one")
  done
  help=$("${COMP_WORDS[0]}" "${words[@]}" --help 2>/dev/null) || help=$("${COMP_WORDS[0]}" "${words[0]}" --help 2>/dev/null)
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(grep -oE '(^|[ ,])--?[a-zA-Z][a-z-]*' <<<"$help" | tr -d ' ,')" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -W "$(sed -n '/^Subcommands:/,$ s/^  \([a-z][a-z-]*\) .*/\1/p' <<<"$help")" -- "$word")
  fi
}
complete -o default -F _kgrpo_host kgrpo-host kgrpo
