#!/bin/sh
# daemon.sh stop|start|kill|freeze|thaw slurmctld|slurmdbd|slurmd [NODE]
# Inside an instance.
set -eu
action=$1 daemon=$2 node=${3:-}
pidfile=/run/slurm/$daemon${node:+-$node}.pid

running() { [ -s "$pidfile" ] && kill -0 "$(cat "$pidfile")" 2> /dev/null; }

end_with() {
    running || return 0
    pid=$(cat "$pidfile")
    kill "-$1" "$pid"
    tries=0
    while kill -0 "$pid" 2> /dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo "$daemon $node does not end" >&2; exit 1; }
        sleep 0.05
    done
}

begin() {
    running && return 0
    case $daemon in
        # a controller that was killed may refuse what it left behind without -i
        slurmctld) slurmctld -i ;;
        slurmdbd) slurmdbd ;;
        slurmd) nsenter -t "$(cat "/run/devcluster/nodes/$node")" -u -n slurmd -N "$node" ;;
    esac
}

case $action in
    stop) end_with TERM ;;
    kill) end_with KILL ;;
    start) begin ;;
    freeze) kill -STOP "$(cat "$pidfile")" ;;
    thaw) kill -CONT "$(cat "$pidfile")" ;;
esac
