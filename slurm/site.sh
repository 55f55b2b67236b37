# shellcheck shell=bash disable=SC2034
# Your site: the one place to edit for modules, environment and MPI.  Every job script reads it, through common.sh.
# Account, partition and time limit stand at the top of each job script, where sbatch looks for them.

# hpcvdj's environment.  Left as it is, the job has that of the shell that submitted it.
# module purge
# module load python/3.12 openmpi/5.0
# . "$HOME/hpcvdj/.venv/bin/activate"

# How srun starts MPI (`srun --mpi=list` shows what there is): pmi2 for the mpich wheel, pmix for Open MPI.
HPCVDJ_MPI=${HPCVDJ_MPI:-pmi2}

# The command itself; the second line is for the container of hpcvdj.def.
hpcvdj=(hpcvdj)
# hpcvdj=(apptainer run --nv "$HOME/hpcvdj.sif")

# A job that ran into its time limit so often is given up.
HPCVDJ_MAX_RESTARTS=${HPCVDJ_MAX_RESTARTS:-100}
