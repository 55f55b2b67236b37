#!/usr/bin/env bash
# Bring up a Slurm of one node for the tests, in a folder of its own (root, Debian or Ubuntu, no systemd needed):
#
#   tests/cluster/slurm-up.sh DIR        then: export SLURM_CONF=DIR/slurm.conf
#
# Keys, sockets, logs and state lie in DIR; tests/cluster/slurm-down.sh DIR ends the daemons. Installs what is missing
# with apt. The node claims CPUS (8) cores and GPUS (4) GPUs, more than there may be, so that many ranks can start.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: slurm-up.sh DIR" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
cpus=${CPUS:-8}
gpus=${GPUS:-4}
host=$(hostname -s)
port=${PORT:-26817}
# Never the same twice within hours: MPICH names shared memory by it, which a killed rank leaves behind.
first_job=$((EPOCHSECONDS % 60000 * 1000 + 1))

fail() { # MESSAGE [LOG]
    echo "slurm-up.sh: $1" >&2
    [ ! -s "${2:-}" ] || tail -n 5 "$2" >&2
    exit 1
}

cannot_have() { # MESSAGE: not a failure, there is no Slurm to be had here
    echo "no Slurm to be had: $*" >&2
    exit 3
}

install_packages() {
    local packages=(slurm-wlm munge) program missing=
    [ "$(id -u)" -eq 0 ] || cannot_have "starting the daemons needs root"
    for program in slurmctld slurmd munged srun; do command -v "$program" >/dev/null || missing=$program; done
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null || cannot_have "no $missing, and no apt-get to install it with"
    # RUNLEVEL=1: the packages' own daemons stay down.
    (apt-get update && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        "${packages[@]}") >"$dir/apt.log" 2>&1 ||
        cannot_have "apt-get could not install ${packages[*]} ($(tail -n 1 "$dir/apt.log"))"
}

start_munge() {
    mkdir -p "$dir/munge"
    chmod 711 "$dir/munge" # munged wants others to reach its socket
    [ -s "$dir/munge/key" ] || (umask 077 && head -c 128 /dev/urandom >"$dir/munge/key")
    munged --force --socket="$dir/munge/socket" --key-file="$dir/munge/key" --seed-file="$dir/munge/seed" \
        --pid-file="$dir/munge/munged.pid" --log-file="$dir/munge/log" || fail "munged does not start" "$dir/munge/log"
}

fake_gpus() { # devices that Slurm takes for GPUs: /dev/null under other names
    local k
    : >"$dir/gres.conf"
    for ((k = 0; k < gpus; k++)); do
        if [ ! -e "$dir/gpu$k" ] && ! mknod -m 666 "$dir/gpu$k" c 1 3; then # as in some containers
            gpus=0
            : >"$dir/gres.conf"
            return
        fi
        echo "Name=gpu Type=fake File=$dir/gpu$k" >>"$dir/gres.conf"
    done
}

configure() {
    local memory gres=
    memory=$(awk '/^MemTotal:/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
    [ "$gpus" -eq 0 ] || gres="Gres=gpu:fake:$gpus"
    mkdir -p "$dir/ctld" "$dir/d"
    echo "CgroupAutomount=no" >"$dir/cgroup.conf"
    cat >"$dir/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$dir/ctld
SlurmdSpoolDir=$dir/d
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0
SlurmdParameters=config_overrides
MpiDefault=none
GresTypes=gpu
JobRequeue=1
ReturnToService=2
MinJobAge=3600
FirstJobId=$first_job
KillWait=15
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus CoresPerSocket=$cpus RealMemory=$memory $gres State=UNKNOWN
PartitionName=test Nodes=$host Default=YES MaxTime=INFINITE OverSubscribe=NO State=UP
END
}

start_slurm() {
    export SLURM_CONF=$dir/slurm.conf
    slurmctld >>"$dir/start.log" 2>&1 || fail "slurmctld does not start" "$dir/slurmctld.log"
    slurmd -N "$host" >>"$dir/start.log" 2>&1 || fail "slurmd does not start" "$dir/slurmd.log"
    for _ in $(seq 150); do
        if sinfo --noheader --format=%T 2>/dev/null | grep -q '^idle$'; then return; fi
        sleep 0.2
    done
    fail "the node does not come up" "$dir/slurmd.log"
}

"$(dirname "$0")/slurm-down.sh" "$dir"
install_packages
getent hosts "$host" >/dev/null || fail "the name of this host, $host, does not resolve: add it to /etc/hosts"
start_munge
fake_gpus
configure
start_slurm
SLURM_CONF=$dir/slurm.conf sinfo --format="%N: %T, %c CPUs, %G"
