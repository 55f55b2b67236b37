# shellcheck shell=bash
# Functions that the job scripts share: the environment of a job, its ranks, and its return to the queue.  Each script
# sources this file.

: "${SLURM_JOB_ID:?submit this script with sbatch}"

hpcvdj=()
# shellcheck source=slurm/site.sh
. "$HPCVDJ_SLURM/site.sh"

# With `sbatch --export=NONE`, the ranks would not have the modules that were loaded here.
export SLURM_EXPORT_ENV=ALL

# A rank uses the CPUs that it requested, even if Slurm does not bind it to them.
export NUMBA_NUM_THREADS=${SLURM_CPUS_PER_TASK:=1}

# Compiled kernels are kept on a disk of the node, where many ranks can read and lock them, or where you set it.
cache=${TMPDIR:-/tmp}/hpcvdj-$SLURM_JOB_ID
export CUPY_CACHE_DIR=${CUPY_CACHE_DIR:-$cache/cupy} NUMBA_CACHE_DIR=${NUMBA_CACHE_DIR:-$cache/numba}

# Since Slurm 22.05 srun does not inherit --cpus-per-task from sbatch.  Without --kill-on-bad-exit, a killed rank would
# leave the other ranks waiting until the time limit.
launch=(srun --mpi="$HPCVDJ_MPI" --kill-on-bad-exit=1 --cpus-per-task="$SLURM_CPUS_PER_TASK")

step=          # process id of the running srun
stop_signal=   # the last signal that asked the job to stop: USR1 near the time limit, TERM when cancelled or preempted
signals=0      # how many signals arrived

say() { echo "== $*"; }

usage_error() { # MESSAGE
    echo "$(basename "$HPCVDJ_SCRIPT"): error: $*" >&2
    exit 2
}

forward() { # SIGNAL: send it to the ranks
    stop_signal=$1
    signals=$((signals + 1))
    [ -z "$step" ] || kill -s "$1" "$step" 2>/dev/null || true
}

on_each_node() { # COMMAND...: run it once per node
    local nodes=$SLURM_JOB_NUM_NODES
    srun --quiet --overlap --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --cpus-per-task=1 "$@"
}

remove_caches() {
    trap - EXIT
    on_each_node rm -rf "$cache" 2>/dev/null || rm -rf "$cache"
}

# Killed ranks leave MPICH's shared memory behind, under a name made of the job and step numbers.  The next start of the
# job has the same numbers and would use it, then fail or hang in MPI_Init.  This removes shared memory that no process
# has mapped, unless it was made in the last seconds: a rank may be about to map it.
# shellcheck disable=SC2016 # expanded on the nodes
sweep='find /dev/shm -maxdepth 1 -user "$(id -un)" -name "mpich_shm_*" ! -newermt "15 seconds ago" |
    while read -r unused; do grep -qs "$unused" /proc/[0-9]*/maps || rm -f "$unused"; done'

begin() { # set up the job; log where it runs, and with what
    trap remove_caches EXIT
    trap 'forward USR1' USR1
    trap 'forward TERM' TERM
    say "job $SLURM_JOB_ID, start $((${SLURM_RESTART_COUNT:-0} + 1)), on $SLURM_JOB_NODELIST, $(date -u +%FT%TZ)"
    [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || on_each_node bash -c "$sweep" || true
    "${launch[@]}" "${hpcvdj[@]}" info
}

run() { # COMMAND...: run it on all ranks until it ends; sets `status`
    local before
    status=75
    [ -z "$stop_signal" ] || return 0
    # In the background, because bash handles a signal only between commands or in `wait`.
    "${launch[@]}" "$@" &
    step=$!
    [ -z "$stop_signal" ] || kill -s "$stop_signal" "$step" 2>/dev/null || true
    # A signal interrupts `wait`; then wait again until the ranks have ended.
    while
        before=$signals
        status=0
        wait "$step" || status=$?
        [ "$signals" != "$before" ]
    do :; done
    step=
}

finish() { # end the job, or return it to the queue if its time limit stopped it
    remove_caches
    # 75: stopped with a checkpoint.  138, 143: USR1 or srun's TERM ended a rank that was just starting or ending.
    case $stop_signal:$status in
        USR1:75 | USR1:138 | USR1:143) requeue ;;
        *:75) say "stopped with a checkpoint; submit the same command again to continue" ;;
    esac
    exit "$status"
}

requeue() {
    if [ "${SLURM_RESTART_COUNT:-0}" -ge "$HPCVDJ_MAX_RESTARTS" ]; then
        say "time limit reached $((SLURM_RESTART_COUNT + 1)) times, not requeued (HPCVDJ_MAX_RESTARTS);" \
            "submit the same command again to continue"
        return
    fi
    say "time limit near: going back to the queue, to continue from the checkpoint"
    scontrol requeue "$SLURM_JOB_ID" || say "not requeued; submit the same command again to continue"
}

compare() { # SEQUENCES OUT.h5 [options]: compare one set, or continue from its checkpoint; ends the job
    run "${hpcvdj[@]}" motifs compare "$1" --output "$2" --resume "${@:3}"
    finish
}

count() { # JUNCTIONS GERMLINE OUT.h5 [options]: count, or continue from the checkpoint; ends the job
    run "${hpcvdj[@]}" count "$1" --germline "$2" --output "$3" --resume "${@:4}"
    finish
}

infer() { # JUNCTIONS OUT [options]: infer a model, or continue from its last iteration; ends the job
    run "${hpcvdj[@]}" infer "$1" --output "$2" --resume "${@:3}"
    finish
}
