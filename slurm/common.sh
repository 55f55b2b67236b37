# shellcheck shell=bash
# What the job scripts share; each sources it.  A job's environment, its ranks, and its way back after a time limit.

: "${SLURM_JOB_ID:?submit this script with sbatch}"

hpcvdj=()
# shellcheck source=slurm/site.sh
. "$HPCVDJ_SLURM/site.sh"

# With `sbatch --export=NONE` the ranks would not have the modules that were loaded here.
export SLURM_EXPORT_ENV=ALL

# A rank uses the CPUs that it asked for, also where Slurm does not bind it to them.
export NUMBA_NUM_THREADS=${SLURM_CPUS_PER_TASK:=1}

# Compiled kernels: on the nodes' own disk, where many ranks can read and lock them.
cache=${TMPDIR:-/tmp}/hpcvdj-$SLURM_JOB_ID
export CUPY_CACHE_DIR=$cache/cupy NUMBA_CACHE_DIR=$cache/numba

# srun takes --cpus-per-task from sbatch no more since Slurm 22.05; and waits for the others if one rank is killed.
launch=(srun --mpi="$HPCVDJ_MPI" --kill-on-bad-exit=1 --cpus-per-task="$SLURM_CPUS_PER_TASK")

step=    # the process id of the running srun
asked=   # the last signal that asked the job to stop: USR1, its time is nearly up; TERM, it is cancelled or preempted
signals=0

say() { echo "== $*"; }

misused() { # MESSAGE: wrong arguments
    echo "$(basename "$HPCVDJ_SCRIPT"): error: $*" >&2
    exit 2
}

ask() { # SIGNAL: hand it on to the ranks
    asked=$1
    signals=$((signals + 1))
    [ -z "$step" ] || kill -s "$1" "$step" 2>/dev/null || true
}

on_each_node() { # COMMAND...: once
    local nodes=$SLURM_JOB_NUM_NODES
    srun --quiet --overlap --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --cpus-per-task=1 "$@"
}

clean() { # the caches
    trap - EXIT
    on_each_node rm -rf "$cache" 2>/dev/null || rm -rf "$cache"
}

# Ranks that are killed leave MPICH's shared memory behind, under a name made of the numbers of job and step.  The next
# start of the job has the same numbers, would take it for its own, and fail or hang in MPI_Init.  What no process has
# mapped is such a leftover; what is seconds old may be about to be mapped.
# shellcheck disable=SC2016 # expanded on the nodes
sweep='find /dev/shm -maxdepth 1 -user "$(id -un)" -name "mpich_shm_*" ! -newermt "15 seconds ago" |
    while read -r left; do grep -qs "$left" /proc/[0-9]*/maps || rm -f "$left"; done'

begin() { # first of all: where the job runs, and with what
    trap clean EXIT
    trap 'ask USR1' USR1
    trap 'ask TERM' TERM
    say "job $SLURM_JOB_ID, start $((${SLURM_RESTART_COUNT:-0} + 1)), on $SLURM_JOB_NODELIST, $(date -u +%FT%TZ)"
    [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || on_each_node bash -c "$sweep" || true
    "${launch[@]}" "${hpcvdj[@]}" info
}

run() { # COMMAND...: on all ranks, to its end; sets `status`
    local before
    status=75
    [ -z "$asked" ] || return 0
    # In the background, since bash handles a signal only between commands or in `wait`.
    "${launch[@]}" "$@" &
    step=$!
    [ -z "$asked" ] || kill -s "$asked" "$step" 2>/dev/null || true
    # A signal interrupts `wait`: then wait again for the ranks to leave.
    while
        before=$signals
        status=0
        wait "$step" || status=$?
        [ "$signals" != "$before" ]
    do :; done
    step=
}

leave() { # end the job, or send it back to the queue if it was its time limit that stopped it
    clean
    # 75: stopped with a checkpoint.  138, 143: a rank was too young or too late to heed USR1 or srun's TERM.
    case $asked:$status in
        USR1:75 | USR1:138 | USR1:143) come_back ;;
        *:75) say "stopped with a checkpoint: the next start of this job, or the same command again, goes on from it" ;;
    esac
    exit "$status"
}

come_back() {
    if [ "${SLURM_RESTART_COUNT:-0}" -ge "$HPCVDJ_MAX_RESTARTS" ]; then
        say "time is up for the $((SLURM_RESTART_COUNT + 1))th time: given up; submit the same command again to go on"
        return
    fi
    say "time is nearly up: back to the queue, to go on from the checkpoint"
    scontrol requeue "$SLURM_JOB_ID" || say "not requeued: submit the same command again to go on"
}

compare() { # SEQUENCES OUT.h5 [options]: compare one set, from its checkpoint if there is one; ends the job
    run "${hpcvdj[@]}" motifs compare "$1" --output "$2" --resume "${@:3}"
    leave
}

count() { # JUNCTIONS GERMLINE OUT.h5 [options]: count one repertoire, from its checkpoint if there is one; ends the job
    run "${hpcvdj[@]}" count "$1" --germline "$2" --output "$3" --resume "${@:4}"
    leave
}
