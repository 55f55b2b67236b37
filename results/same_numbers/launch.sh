# shellcheck shell=bash
hpcvdj_on() { # RANKS ARGUMENTS...
    local ranks=$1 launcher=()
    shift
    if [ "$ranks" != 1 ]; then launcher=(mpiexec -n "$ranks"); fi
    "${launcher[@]}" python -m hpcvdj "$@"
}
