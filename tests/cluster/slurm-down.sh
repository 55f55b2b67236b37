#!/usr/bin/env bash
# End the daemons that slurm-up.sh started in DIR: those of its pid files, and no others.
#
#   tests/cluster/slurm-down.sh DIR
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: slurm-down.sh DIR" >&2; exit 2; }

runs() { # PID NAME: still that program, and not a zombie, which stays where nothing reaps orphans
    [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

end() { # NAME PIDFILE
    local pid
    [ -s "$2" ] || return 0
    pid=$(cat "$2")
    for _ in $(seq 100); do
        runs "$pid" "$1" || break
        kill "$pid" 2>/dev/null || break
        sleep 0.1
    done
    rm -f "$2"
}

end slurmd "$1/slurmd.pid"
end slurmctld "$1/slurmctld.pid"
end munged "$1/munge/munged.pid"
