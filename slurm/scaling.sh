#!/usr/bin/env bash
# Measure strong scaling over GPUs: one job per number of GPUs, because each needs another shape.  On a login node:
#
#   slurm/scaling.sh JUNCTIONS GERMLINE FOLDER [options of hpcvdj study scaling]
#
# ---- your site: account, partition and time limit are at the top of scaling.sbatch
gpus=${HPCVDJ_GPUS:-1 2 3 4 5 6 7 8}      # numbers of GPUs to measure
per_node=${HPCVDJ_GPUS_PER_NODE:-8}       # GPUs per node
set -euo pipefail

if [ $# -lt 3 ]; then
    echo "usage: slurm/scaling.sh JUNCTIONS GERMLINE FOLDER [options of hpcvdj study scaling]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
export HPCVDJ_SLURM=$here

for n in $gpus; do
    nodes=$(((n + per_node - 1) / per_node))
    sbatch --nodes="$nodes" --ntasks="$n" --job-name="hpcvdj-scaling-$n" "$here/scaling.sbatch" "$@"
done
echo "When all jobs have ended (squeue --me), make the tables and the plot: hpcvdj study render $3"
