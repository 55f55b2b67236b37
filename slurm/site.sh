# shellcheck shell=bash disable=SC2034
# Your site: modules, environment and MPI.  Every job script reads this file through common.sh.
# Account, partition and time limit are at the top of each job script, where sbatch reads them.

# The environment of hpcvdj.  Without these lines, a job uses the environment of the shell that submitted it.
# module purge
# module load python/3.12 openmpi/5.0
# . "$HOME/hpcvdj/.venv/bin/activate"

# How srun starts MPI, one of `srun --mpi=list`: pmi2 for the mpich wheel, pmix for Open MPI.
HPCVDJ_MPI=${HPCVDJ_MPI:-pmi2}

# The command.  For the container of hpcvdj.def, use the second line instead.
hpcvdj=(hpcvdj)
# hpcvdj=(apptainer run --nv "$HOME/hpcvdj.sif")

# A job that reaches its time limit more often than this is not requeued.
HPCVDJ_MAX_RESTARTS=${HPCVDJ_MAX_RESTARTS:-100}
