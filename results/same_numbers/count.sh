#!/usr/bin/env bash
# Count the example and real repertoires in every way, and print the digest of each result.
# results/same_numbers/count.sh DATA [RANKS...]   DATA: the folder of the real repertoires; BACKEND=cpu or cuda
set -euo pipefail
data=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NUMBA_NUM_THREADS=1

. "$here/launch.sh"

germline=inputs/germline
count() { # NAME RANKS ARGUMENTS...
    local name=$1 ranks=$2
    shift 2
    hpcvdj_on "$ranks" -q count "$@" --backend "${BACKEND:-cpu}" -o "$work/$name.h5" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    python "$here/digest.py" "$work/$name.h5"
    rm -rf "$work/$name.h5" "$work/$name.h5.parts"
}

mkdir "$work/tables"
for name in mouse_TRB_dash2017 mouse_TRA_dash2017; do cp "$data/$name.tsv.gz" "$work/tables"; done
for ranks in "${@:-1}"; do
    count "example-direct-$ranks" "$ranks" inputs/mouse_trb/repertoire.tsv.gz -g $germline/mouse_trb_paper.tsv
    count "example-slices-$ranks" "$ranks" inputs/mouse_trb/repertoire.tsv.gz -g $germline/mouse_trb_paper.tsv --batch-rows 30000
    count "example-distinct-$ranks" "$ranks" inputs/mouse_trb/repertoire.tsv.gz -g $germline/mouse_trb_paper.tsv --d-forms distinct
    for method in bitwise baseline; do
        count "small-$method-$ranks" "$ranks" inputs/mouse_trb/small.tsv -g $germline/mouse_trb_paper.tsv --method $method --max-n 2
        count "mouse-trb-$method-$ranks" "$ranks" "$data/mouse_TRB_dash2017.tsv.gz" -g $germline/mouse_trb.tsv --method $method --max-n 1
    done
    count "mouse-trb-$ranks" "$ranks" "$data/mouse_TRB_dash2017.tsv.gz" -g $germline/mouse_trb.tsv --max-n all
    count "mouse-trb-first-$ranks" "$ranks" "$data/mouse_TRB_dash2017.tsv.gz" -g $germline/mouse_trb.tsv --ambiguous-calls first --unlisted-alleles first --d-alleles all
    count "mouse-tra-$ranks" "$ranks" "$data/mouse_TRA_dash2017.tsv.gz" -g $germline/mouse_tra.tsv --max-n all
    count "human-$ranks" "$ranks" "$data/human_TRB_minervina_M15_CD8.tsv.gz" -g $germline/human_trb.tsv --max-n all
    count "human-slices-$ranks" "$ranks" "$data/human_TRB_minervina_M15_CD8.tsv.gz" -g $germline/human_trb.tsv --batch-rows 9999
    count "together-$ranks" "$ranks" "$work/tables" -g $germline/mouse_trb.tsv --together
    count "together-slices-$ranks" "$ranks" "$work/tables" -g $germline/mouse_trb.tsv --together --batch-rows 1000
done
