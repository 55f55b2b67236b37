#!/usr/bin/env bash
# Compare the 500 example junctions with every method, and print the digest of each result.
# results/same_numbers/motifs.sh [RANKS...]   BACKEND=cpu or cuda
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NUMBA_NUM_THREADS=1

. "$here/launch.sh"

compare() { # NAME RANKS ARGUMENTS...
    local name=$1 ranks=$2
    shift 2
    hpcvdj_on "$ranks" -q motifs compare inputs/mouse_trb/small.tsv --backend "${BACKEND:-cpu}" "$@" \
        -o "$work/$name.h5" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    python "$here/digest.py" "$work/$name.h5"
    rm "$work/$name.h5"
}

for ranks in "${@:-1}"; do
    for method in matrix pigeonhole index; do
        compare "k8-d3-$method-$ranks" "$ranks" -k 8 -d 3 --strands both --method $method
    done
    for method in pigeonhole index; do
        compare "k12-d2-$method-$ranks" "$ranks" -k 12 -d 2 --strands both --method $method
        compare "k20-d2-$method-$ranks" "$ranks" -k 20 -d 2 --method $method
    done
    for score in weights cosine background; do
        compare "k12-d1-$score-$ranks" "$ranks" -k 12 -d 1 --strands both --score $score --top 10
    done
    compare "k8-d2-edges-$ranks" "$ranks" -k 8 -d 2 --distinct --score cosine --min-score 0.3
done
