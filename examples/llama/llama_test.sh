#!/bin/sh
# llama_test.sh COHORT LLAMA MODEL - every layout of ranks says what one rank says; bad files are named.
set -u
export COHORT_PROFILE=described # measures nothing, keeps nothing in the home folder

cohort=${1:?usage: llama_test.sh COHORT LLAMA MODEL}
llama=${2:?usage: llama_test.sh COHORT LLAMA MODEL}
model=${3:?usage: llama_test.sh COHORT LLAMA MODEL}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tokens=60
prompt='And it came to pass, when the king of' # two chunks of 16, and some

fail() {
    echo "llama_test: $*"
    exit 1
}

generate() { # tensor, pipeline, logits
    "$cohort" run -n $(($1 * $2)) "$llama" -m "$model" -t "$1" -s "$2" -n $tokens -p "$prompt" -q -l "$3" 2>&1
}

# Both files of f32 agree within 1e-4 of the largest value.
close_enough() {
    od -An -v -w4 -tf4 "$1" >"$work/left"
    od -An -v -w4 -tf4 "$2" >"$work/right"
    paste "$work/left" "$work/right" | awk '
        { off = $1 - $2; if (off < 0) off = -off; if (off > most) most = off
          size = $1 < 0 ? -$1 : $1; if (size > largest) largest = size }
        END { exit !(NR == 256 && most <= 1e-4 * largest) }'
}

generate 1 1 "$work/one" >"$work/text" || fail "one rank: $(cat "$work/text")"
length=$(wc -c <"$work/text")
[ "$length" -eq $((${#prompt} + tokens + 1)) ] || fail "one rank wrote $length bytes: $(cat "$work/text")"

for layout in '2 1' '4 1' '1 2' '1 3' '2 2'; do
    set -- $layout
    generate "$1" "$2" "$work/first" >"$work/other" || fail "$layout: $(cat "$work/other")"
    cmp -s "$work/text" "$work/other" || fail "$layout: it says '$(cat "$work/other")', one rank '$(cat "$work/text")'"
    close_enough "$work/one" "$work/first" || fail "$layout: other logits than one rank"
    generate "$1" "$2" "$work/second" >"$work/other" || fail "$layout again: $(cat "$work/other")"
    cmp -s "$work/first" "$work/second" || fail "$layout: other bits in the second run"
done

# The arena is at most a tenth larger than it must be.
"$llama" -m "$model" -n 2 | sed -n 's/.*arena.*(\(.*\) of the lower bound)/\1/p' |
    awk '{ exit !(NR == 1 && $1 <= 1.1) } END { if (NR != 1) exit 1 }' || fail "the arena is too large"

refused() { # words, command...
    words=$1
    shift
    if "$@" >"$work/out" 2>&1; then fail "this works: $*"; fi
    grep -qF "$words" "$work/out" || fail "'$words' is not in: $(cat "$work/out")"
}

refused 'q_proj.weight is 128, which cannot be divided among 3 ranks' "$cohort" run -n 3 "$llama" -m "$model" -t 3
refused 'groups is 4, which cannot be divided among 8 ranks' "$cohort" run -n 8 "$llama" -m "$model" -t 8
refused '7 stages are more than the 6 layers' "$cohort" run -n 7 "$llama" -m "$model" -s 7
refused '3 ranks cannot be 2 tensor-parallel times 1' "$cohort" run -n 3 "$llama" -m "$model" -t 2
refused "$work/none/config.json" "$llama" -m "$work/none"

mkdir "$work/bad"
cp "$model/config.json" "$work/bad"
head -c 100000 "$model/model.safetensors" >"$work/bad/model.safetensors"
refused "$work/bad/model.safetensors: tensor" "$llama" -m "$work/bad"
head -c 100 "$model/model.safetensors" >"$work/bad/model.safetensors"
refused "$work/bad/model.safetensors: a header of" "$llama" -m "$work/bad"
head -c 7 "$model/model.safetensors" >"$work/bad/model.safetensors"
refused "$work/bad/model.safetensors: 7 bytes" "$llama" -m "$work/bad"
cp "$model/model.safetensors" "$work/bad"

# Fields that would change the result are refused by name; said to be off, they are not.
with_fields() {
    sed "s/^{/{ $1,/" "$model/config.json" >"$work/bad/config.json"
}
with_fields '"attention_bias": false, "mlp_bias": false, "rope_scaling": null, "partial_rotary_factor": 1.0'
"$llama" -m "$work/bad" -n 1 >"$work/out" 2>&1 || fail "fields that are off: $(cat "$work/out")"
for field in attention_bias mlp_bias; do
    with_fields "\"$field\": true"
    refused "$work/bad/config.json: $field is not supported" "$llama" -m "$work/bad"
done
for field in rope_scaling rope_parameters quantization_config; do
    with_fields "\"$field\": {\"factor\": 2}"
    refused "$work/bad/config.json: $field is not supported" "$llama" -m "$work/bad"
done
with_fields '"partial_rotary_factor": 0.5'
refused 'partial_rotary_factor is 0.5' "$llama" -m "$work/bad"
cp "$model/config.json" "$work/bad"
sed -i 's/"hidden_size": 128/"hidden_size": 96/' "$work/bad/config.json"
refused 'config.json says' "$llama" -m "$work/bad"
sed -i 's/"hidden_size": 96/"hidden_size": 0/' "$work/bad/config.json"
refused 'hidden_size must be a number' "$llama" -m "$work/bad"

echo "llama_test: six layouts, the same $tokens tokens: $(tail -n 1 "$work/text")"
