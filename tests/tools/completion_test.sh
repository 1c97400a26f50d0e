#!/bin/bash
# Completion: each shell that is here is asked for the completions of real command lines, and offers every flag
# that --help lists.
. "$(dirname "$0")/common.sh"

run 2 completion
says err "it takes the name of one shell"
run 2 completion tcsh
says err "there is no completion for 'tcsh'"
run 0 completion --help
for shell in bash zsh fish; do
    run 0 completion "$shell"
    [ ! -s "$folder/err" ] || fail "completion $shell wrote an error message"
    mv "$folder/out" "$folder/completion.$shell"
done

# What --help says there is.
run 0 help
commands=$(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$folder/out")
flags_of() { # command...: the flags of its help, with the letters
    "$cohort" "$@" --help | sed -n '/^flags:/,/^$/p' | grep -oE '^  (-[a-z], +|    )--[a-z-]+' | grep -oE -- '-[-a-z]+'
}
[ "$(flags_of run | grep -c .)" -ge 10 ] || fail "the help of cohort run could not be read"

# offers SHELL ANSWER LINE WORD...: ANSWER, a file, has each of the words as one that completes the line.
offers() {
    shell=$1 answer=$2 line=$3
    shift 3
    for word; do
        grep -qE -- "(^|[[:space:]])$word([[:space:]]|$)" "$answer" || {
            cat "$answer" >&2
            fail "$shell: '$line' is not completed by '$word'"
        }
    done
}
refuses() { # SHELL ANSWER LINE WORD
    ! grep -qE -- "(^|[[:space:]])$4([[:space:]]|$)" "$2" || fail "$1: '$3' is completed by '$4'"
}

# check SHELL: complete_SHELL LINE prints what completes the line.
check() {
    shell=$1 answer=$folder/answer
    # shellcheck disable=SC2086 # words
    { "complete_$shell" 'cohort ' >"$answer" && offers "$shell" "$answer" 'cohort ' $commands; } || exit 1
    for command in run ps info bench tune completion 'bench pipeline' 'bench links' 'bench gpu'; do
        "complete_$shell" "cohort $command -" >"$answer"
        # shellcheck disable=SC2046,SC2086 # words
        offers "$shell" "$answer" "cohort $command -" $(flags_of $command | grep -e --)
    done
    "complete_$shell" 'cohort run --bind ' >"$answer"
    offers "$shell" "$answer" 'cohort run --bind ' none core
    "complete_$shell" 'cohort run --engine ' >"$answer"
    offers "$shell" "$answer" 'cohort run --engine ' shm threads
    "complete_$shell" 'cohort bench all_' >"$answer"
    offers "$shell" "$answer" 'cohort bench all_' all_reduce all_gather
    "complete_$shell" 'cohort bench -' >"$answer"
    refuses "$shell" "$answer" 'cohort bench -' --bind
    "complete_$shell" 'cohort completion ' >"$answer"
    offers "$shell" "$answer" 'cohort completion ' bash zsh fish
    "complete_$shell" 'cohort help ' >"$answer"
    offers "$shell" "$answer" 'cohort help ' run tune
    # The program, and then its own arguments.
    "complete_$shell" "cohort run -n 2 $folder/completion.f" >"$answer"
    offers "$shell" "$answer" 'cohort run -n 2 PATH' "[^[:space:]]*completion.fish"
    "complete_$shell" 'cohort run -n 2 true --' >"$answer"
    refuses "$shell" "$answer" 'cohort run -n 2 true --' --bind
    "complete_$shell" 'cohort run --bind core --' >"$answer"
    offers "$shell" "$answer" 'cohort run --bind core --' --heap
    echo "completion: $shell offers all commands and flags"
}

# As readline asks: the words and the number of the last one. What the function leaves empty is completed by files.
complete_bash() {
    bash --norc --noprofile -c '
        . "$1" || exit 1
        eval "$(complete -p cohort | sed "s/.*-F \([^ ]*\) .*/function=\1/")"
        COMP_LINE=$2 COMP_POINT=${#2}
        read -ra COMP_WORDS <<<"${2//=/ = }"
        [[ $2 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        "$function" cohort "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf "%s\n" "${COMPREPLY[@]}"
        ((${#COMPREPLY[@]} > 0)) || compgen -f -- "${COMP_WORDS[COMP_CWORD]}"
    ' bash "$folder/completion.bash" "$1"
}
check bash
complete_bash 'cohort run --bind=co' >"$folder/answer"
offers bash "$folder/answer" 'cohort run --bind=co' core
touch "$folder/profile.json"
complete_bash "cohort tune -o $folder/prof" >"$folder/answer"
offers bash "$folder/answer" 'cohort tune -o FILE' "$folder/profile.json"

complete_fish() {
    HOME=$folder XDG_CONFIG_HOME=$folder fish --no-config -c 'source $argv[1]; complete -C $argv[2]' \
        "$folder/completion.fish" "$1" </dev/null
}
if command -v fish >/dev/null; then
    check fish
else
    echo "completion: fish is not here, so its script was not run"
fi

# A terminal with zsh in it, where the tab key is pressed.
complete_zsh() {
    zsh -f -c '
        zmodload zsh/zpty
        zpty -b shell "TERM=vt100 zsh -f -i"
        say() { zpty -w shell "$1" }
        say "PS1=; unsetopt zle_bracketed_paste list_ambiguous auto_menu; setopt no_beep no_list_packed"
        say "stty columns 400 rows 2000; LISTMAX=0; fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; echo ready-\$((6*7))"
        text=
        while [[ $text != *ready-42* ]]; do zpty -r shell line || sleep 0.01; text+=$line; done
        zpty -w -n shell "$2"
        sleep 0.05
        zpty -w -n shell $'"'\\t\\t'"'
        zpty -w -n shell $'"'\\x15'"'
        say "echo done-\$((6*7))"
        while [[ $text != *done-42* ]]; do zpty -r shell line || sleep 0.01; text+=$line; done
        print -r -- "${text##*ready-42}"
    ' zsh "$folder/zsh" "$1" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/[\r\x07]/\n/g'
}
if command -v zsh >/dev/null; then
    mkdir "$folder/zsh"
    cp "$folder/completion.zsh" "$folder/zsh/_cohort"
    check zsh
else
    echo "completion: zsh is not here, so its script was not run"
fi
