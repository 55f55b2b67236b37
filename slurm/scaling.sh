#!/usr/bin/env bash
# Strong scaling over GPUs: one job for each number of them, since each has a shape of its own.  On a login node:
#
#   slurm/scaling.sh JUNCTIONS GERMLINE FOLDER [options of hpcvdj scaling measure]
#
# ---- your site: account, partition and time limit are at the top of scaling.sbatch
gpus=${HPCVDJ_GPUS:-1 2 3 4 5 6 7 8}      # the numbers of GPUs to measure
per_node=${HPCVDJ_GPUS_PER_NODE:-8}       # GPUs that one node has
set -euo pipefail

if [ $# -lt 3 ]; then
    echo "usage: slurm/scaling.sh JUNCTIONS GERMLINE FOLDER [options of hpcvdj scaling measure]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
export HPCVDJ_SLURM=$here

for n in $gpus; do
    nodes=$(((n + per_node - 1) / per_node))
    sbatch --nodes="$nodes" --ntasks="$n" --job-name="hpcvdj-scaling-$n" "$here/scaling.sbatch" "$@"
done
echo "When all are done (squeue --me), make the tables and the plot: hpcvdj scaling render $3"
