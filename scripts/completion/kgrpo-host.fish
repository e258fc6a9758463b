# Completion of kgrpo-host for fish, as kgrpo-host.bash.
function __kgrpo_host_words
    set -l given (string match -v -- '-*' (commandline -opc))
    set -l help ($given[1] $given[2..3] --help 2>/dev/null; or $given[1] $given[2] --help 2>/dev/null)
    string match -rga '^  ([a-z][a-z-]*) ' -- (string join \n $help | string split \n | sed -n '/^Subcommands:/,$ p')
    string match -rga '(?:^|[ ,])(--?[a-zA-Z][a-z-]*)' -- $help
end
for program in kgrpo-host kgrpo
    complete -c $program -a '(__kgrpo_host_words)'
end
