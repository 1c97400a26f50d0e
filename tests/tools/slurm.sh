# slurm.sh - a Slurm of one's own, for tests: one node on this host, or one in each of some network namespaces. It is
# started and stopped by the one who sources this. Needs root, and munged, slurmctld, slurmd and srun.

# slurm_reason: prints why it cannot be started here; nothing where it can.
slurm_reason() {
    [ "$(id -u)" = 0 ] || { echo "Slurm needs root"; return; }
    for program in munged slurmctld slurmd srun; do
        command -v "$program" >/dev/null || { echo "$program is not installed (scripts/need-packages launchers)"; return; }
    done
}

# slurm_up FOLDER [NAMESPACE=ADDRESS...]: munged, slurmctld and a slurmd for each node in the background, with all their
# files below FOLDER. Without namespaces the node is localhost; else they are n1, n2, ... and the first has the slurmctld.
# Fails when the nodes are not idle within some 10 s.
slurm_up() {
    slurm=$1 slurm_pids= slurm_enter=
    shift
    mkdir -p "$slurm/munge" "$slurm/state" "$slurm/tmp-localhost" "$slurm/tmp-n1" "$slurm/tmp-n2" && chmod 700 "$slurm/munge" || return 1
    head -c 1024 /dev/urandom >"$slurm/munge/key" && chmod 600 "$slurm/munge/key" || return 1
    # Ports that nobody else on this host is likely to have.
    port=$((20000 + $$ % 10000))
    controller=localhost nodes='NodeName=localhost' count=0
    for place in "$@"; do
        count=$((count + 1))
        [ "$count" -gt 1 ] || controller="$(hostname)(${place#*=})" nodes= slurm_enter="nsenter --net=/run/netns/${place%%=*}"
        nodes="$nodes
NodeName=n$count NodeAddr=${place#*=} NodeHostname=$(hostname)"
    done
    nodes=$(echo "$nodes" | sed 's/^NodeName.*/& CPUs=8 State=UNKNOWN/')
    cat >"$slurm/slurm.conf" <<END
ClusterName=cohort
SlurmctldHost=$controller
SlurmUser=root
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$slurm/munge/socket
CredType=cred/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool-%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
TreeWidth=64
SlurmdParameters=config_overrides
TmpFS=$slurm/tmp-%n
$nodes
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
END
    export SLURM_CONF=$slurm/slurm.conf
    munged --foreground --force --key-file="$slurm/munge/key" --socket="$slurm/munge/socket" \
        --pid-file="$slurm/munge/pid" --log-file="$slurm/munge/log" --seed-file="$slurm/munge/seed" >/dev/null 2>&1 &
    slurm_pids=$!
    wait_for 5 test -S "$slurm/munge/socket" || return 1
    # Without a shell in between, whose end they would outlive.
    # shellcheck disable=SC2086 # a list of words
    $slurm_enter slurmctld -D >"$slurm/slurmctld.log" 2>&1 &
    slurm_pids="$slurm_pids $!"
    if [ $# = 0 ]; then
        slurmd -D -N localhost >"$slurm/slurmd.log" 2>&1 &
        slurm_pids="$slurm_pids $!"
    fi
    count=0
    for place in "$@"; do
        count=$((count + 1))
        nsenter --net="/run/netns/${place%%=*}" slurmd -D -N "n$count" >"$slurm/slurmd-n$count.log" 2>&1 &
        slurm_pids="$slurm_pids $!"
    done
    slurm_nodes=${count#0}
    wait_for 4 slurm_is_idle
}
slurm_is_idle() { [ "$(in_slurm timeout 2 sinfo -h -o '%t %D' 2>/dev/null)" = "idle ${slurm_nodes:-1}" ]; }

# in_slurm COMMAND...: on the first node, where srun is started.
in_slurm() {
    # shellcheck disable=SC2086 # a list of words
    $slurm_enter "$@"
}

# slurm_down: ends them, and the steps that are left: a slurmd that waits for the end of a step waits for ever when nobody is there
# to be told of it.
slurm_down() {
    [ -n "${slurm_pids:-}" ] || return 0
    wait_for 3 slurm_is_idle
    for pid in $slurm_pids; do
        kill -KILL $(ps -o pid= --ppid "$pid") "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    slurm_pids=
}
