#!/bin/bash
# The profile of the host: what starts keep, what they do with files that are not good, what is shown.
# Files that are not good: docs/faults.md F39.
. "$(dirname "$0")/common.sh"
unset COHORT_PROFILE XDG_CACHE_HOME
profiles=$(dirname "$0")/../profiles

# job WORDS...: a job of two ranks runs, whatever the profile; its complaints are in err.
job() {
    "$cohort" run -n 2 "$program" >"$folder/out" 2>"$folder/err" </dev/null || fail "the job failed: $*"
    [ ! -s "$folder/out" ] || fail "the job said something: $*"
}
program=$2

# Starts keep what they find; no file is there before, and none beside it after.
export XDG_CACHE_HOME=$folder/cache
run 0 info --host
says out "(which is not there yet)"
[ -e "$folder/cache" ] && fail "looking made a folder"
job first
job second
run 0 info --host
for row in copy_256K copy_far reduce_stream_from line message_byte; do
    grep -qE "^  $row +[a-z0-9.+-]+ +[a-z/]+ +(described|seen-once|measured|unsteady) " "$folder/out" ||
        fail "row $row is not shown"
done
run 0 info --host --json
for word in '"rows"' '"cpu"' '"origin": "described"' '"warning": null'; do says out "$word"; done
[ "$(find "$folder/cache" -type f | wc -l)" -le 1 ] || fail "more than one file"

# As described: nothing is measured or kept.
COHORT_PROFILE=described XDG_CACHE_HOME=$folder/none job described
[ -e "$folder/none" ] && fail "described, and yet something was kept"
COHORT_PROFILE=described run 0 info --host
says out "profile, as described"

# One of each family seen, forced on purpose: a warning, and right results.
for family in sapphire-rapids zen3 zen4; do
    cp "$profiles/$family" "$folder/$family"
    chmod 644 "$folder/$family"
    COHORT_PROFILE=$folder/$family job "$family"
    says err "cohort run: warning: the profile $folder/$family is of another host"
    cmp -s "$profiles/$family" "$folder/$family" || fail "$family was written to"
    COHORT_PROFILE=$folder/$family run 0 info --host
    says out "is of another host"
    # Taken all the same where it says that it is for any host: still the right results.
    sed 's/^\(cohort\|cpu\|cores\|kernel\) .*/\1 any/' "$profiles/$family" >"$folder/any"
    COHORT_PROFILE=$folder/any job "$family for any host"
done

# Cut short, absurd, writable by others, a folder.
head -n 9 "$profiles/zen3" | sed 's/^\(cohort\|cpu\|cores\|kernel\) .*/\1 any/' >"$folder/short"
COHORT_PROFILE=$folder/short job short
says err "is cut short"
sed 's/^row line .*/row line 1e300 tuned 1 1/' "$folder/any" >"$folder/absurd"
COHORT_PROFILE=$folder/absurd job absurd
says err "cannot be"
cp "$folder/any" "$folder/open"
chmod 666 "$folder/open"
COHORT_PROFILE=$folder/open job open
says err "can be written by others"
mkfifo "$folder/fifo"
for special in "$folder" "$folder/fifo" /dev/zero; do
    COHORT_PROFILE=$special job "$special"
    says err "no plain file"
done

# Nowhere to keep it: no word about it, and no failure.
XDG_CACHE_HOME=/proc/nowhere job nowhere
[ -s "$folder/err" ] && fail "a folder that cannot be made is complained about"
env -u HOME -u XDG_CACHE_HOME "$cohort" run -n 2 "$program" >"$folder/out" 2>"$folder/err" </dev/null ||
    fail "the job failed without a home"
[ -s "$folder/err" ] && fail "a missing home is complained about"

# The damaged one in the cache folder is warned of once, and made anew.
file=$(find "$folder/cache" -type f)
if [ -n "$file" ]; then
    echo nonsense >"$file"
    job damaged
    says err "line 1 of the profile $file"
    job healed
    [ -s "$folder/err" ] && fail "the file was not made anew"
fi

run 2 info --host --collectives
says err "one at a time"
echo "profile: passed"
