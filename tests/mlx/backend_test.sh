#!/bin/sh
# backend_test.sh COHORT FOLDER PYTHON - mlx.core.distributed on Cohort's groups (backend.py), over processes that map each other,
# and over MLX's own ring, which has neither splits nor messages to any rank.
set -u
cohort=$1 folder=$2 python=${3:-}
here=$(dirname "$0")
export PYTHONPATH="$folder" COHORT_MODULES="$folder/../cohort"

if [ ! -x "$python" ] || ! "$python" -c 'import cohort_mlx' 2>/dev/null; then
    echo "skipped: MLX, nanobind or Python's headers were not there when this was built"
    exit 77
fi
failed=0
"$cohort" run -n 4 "$python" "$here/backend.py" || failed=1
"$cohort" run -n 4 --engine mlx:ring "$python" "$here/backend.py" || failed=1
"$cohort" run -n 3 "$python" "$here/backend.py" differ || failed=1
exit "$failed"
