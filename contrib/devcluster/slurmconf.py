"""The site as the files that Slurm and Debian read."""

from dataclasses import dataclass

from contrib.devcluster.site import ADMIN, FIRST_GID, Partition, Site

HEAD = "head"
VOLUMES = """\
[[area]]
name = "volumes"
path = "/volumes"
provider = "btrfs"

[[area]]
name = "archive"
path = "/archive"
provider = "folder"
"""


@dataclass(frozen=True, slots=True)
class Network:
    """One /24 of an instance: the machine, the head, the nodes."""

    prefix: str  # "198.18.7"

    @property
    def host(self) -> str:
        return f"{self.prefix}.1"

    @property
    def head(self) -> str:
        return f"{self.prefix}.2"

    def node(self, index: int) -> str:
        return f"{self.prefix}.{11 + index}"


def files(site: Site, network: Network) -> dict[str, str]:
    """Every file of the instance's /etc by its path below /etc."""
    return {
        "slurm/slurm.conf": slurm_conf(site, network),
        "slurm/gres.conf": gres_conf(site),
        "slurm/cgroup.conf": "CgroupPlugin=disabled\n",
        "slurm/slurmdbd.conf": SLURMDBD,
        "qos": qos_script(site),
        "accounts": accounts_script(site),
        "limits": limits_script(site),
        "hosts": hosts(site, network),
        "hostname": f"{HEAD}\n",
        "volumes.toml": VOLUMES,
    }


def slurm_conf(site: Site, network: Network) -> str:
    tres = ["gres/gpu", *(f"gres/gpu:{kind}" for kind in site.gpu_types())]
    lines = [
        f"ClusterName={site.cluster}",
        f"SlurmctldHost={HEAD}({network.head})",
        SLURM,
        f"AccountingStorageTRES={','.join(tres)}",
    ]
    addresses = iter(range(len(site.node_names())))
    for partition in site.partitions:
        for name in partition.node_names():
            lines.append(_node(name, partition, network.node(next(addresses))))
    lines += [_partition(partition) for partition in site.partitions]
    return "\n".join([*lines, site.slurm_conf]) + "\n"


def gres_conf(site: Site) -> str:
    """Device files, not counts: only with File= does Slurm set CUDA_VISIBLE_DEVICES."""
    return "".join(
        f"NodeName={name} Name=gpu Type={partition.gpu} "
        f"File=/dev/nvidia[0-{partition.gpus_per_node - 1}] Flags=nvidia_gpu_env\n"
        for partition in site.partitions
        for name in partition.node_names()
    )


def hosts(site: Site, network: Network) -> str:
    lines = ["127.0.0.1 localhost", f"{network.host} gateway", f"{network.head} {HEAD}"]
    lines += [f"{network.node(at)} {name}" for at, name in enumerate(site.node_names())]
    return "\n".join(lines) + "\n"


def passwd_lines(site: Site) -> str:
    return "".join(
        f"{a.name}:x:{a.uid}:{a.gid}::/home/{a.name}:/bin/bash\n" for a in site.accounts()
    )


def group_lines(site: Site) -> str:
    lines = [f"admins:x:{FIRST_GID}:"]
    for at, group in enumerate(site.groups, start=1):
        guests = [a.name for a in site.accounts() if group.name in a.others]
        lines.append(f"{group.name}:x:{FIRST_GID + at}:{','.join(guests)}")
    return "\n".join(lines) + "\n"


def qos_script(site: Site) -> str:
    """What sacctmgr reads on its standard input, before the first slurmctld starts."""
    lines = [f"add cluster {site.cluster}"]
    for qos in site.qos:
        verb = "modify qos {} set {}" if qos.name == "normal" else "add qos {} {}"
        lines.append(verb.format(qos.name, " ".join(_split(qos.options)[0])))
    return "\n".join(lines) + "\n"


def accounts_script(site: Site) -> str:
    """A second call's input: one sacctmgr does not see the QoS that it has itself added."""
    lines = []
    for group in site.groups:
        limits = " ".join(_split(group.limits)[0])
        title = f'Description="{group.title}" Organization="{site.cluster}"'
        qos_list = f"qos={','.join(group.qos)} defaultqos={group.qos[0]}"
        lines.append(f"add account {group.name} {title} {qos_list} {limits}")
    for group in site.groups:
        lines.append(f"add user {','.join(group.people())} account={group.name}")
        lines.append(f"add coordinator account={group.name} names={group.leader}")
    groups = ",".join(group.name for group in site.groups)
    lines.append(f"add user {ADMIN} account={groups} adminlevel=admin")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def limits_script(site: Site) -> str:
    """The rest: sacctmgr knows gres/gpu only once a slurmctld has reported it."""
    lines = [
        f"modify {kind} {name} set {' '.join(late)}"
        for kind, name, options in [
            *(("qos", qos.name, qos.options) for qos in site.qos),
            *(("account", group.name, group.limits) for group in site.groups),
        ]
        if (late := _split(options)[1])
    ]
    return "\n".join(lines) + "\n"


def _split(options: tuple[str, ...]) -> tuple[list[str], list[str]]:
    early = [option for option in options if "gres/" not in option]
    return early, [option for option in options if "gres/" in option]


def _node(name: str, partition: Partition, address: str) -> str:
    half = max(1, partition.cpus_per_node // 2)
    return (
        f"NodeName={name} NodeAddr={address} CPUs={half * 2} Sockets=2 CoresPerSocket={half} "
        f"ThreadsPerCore=1 RealMemory={partition.memory_mib} "
        f"Gres=gpu:{partition.gpu}:{partition.gpus_per_node} Feature={partition.gpu}"
    )


def _partition(partition: Partition) -> str:
    default = "YES" if partition.default else "NO"
    short = min(partition.max_time, "01:00:00") if "-" not in partition.max_time else "01:00:00"
    per_gpu = partition.memory_mib // partition.gpus_per_node // 2
    return (
        f"PartitionName={partition.name} Nodes={','.join(partition.node_names())} "
        f"Default={default} MaxTime={partition.max_time} DefaultTime={short} State=UP "
        f"DefCpuPerGPU=4 DefMemPerGPU={per_gpu}"
    )


SLURMDBD = f"""\
AuthType=auth/munge
DbdHost={HEAD}
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurm/slurmdbd.pid
"""

SLURM = f"""\
SlurmUser=slurm
AuthType=auth/munge
# this is also how long a requeued job waits before it may start again: 120 s by default
AuthInfo=cred_expire=10
MpiDefault=none
ReturnToService=2
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd-%n
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd-%n.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd-%n.log
# two cores pose as many nodes, so nothing may depend on what the hardware really is
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=10
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmctldTimeout=60
SlurmdTimeout=60
KillWait=10
MinJobAge=300
JobRequeue=1
# Batch jobs start in the next of slurmctld's rounds, once a second: it cannot be told to be faster.
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=5,bf_interval=5,\
bf_continue,bf_window=11520,bf_max_job_test=1000
PriorityType=priority/multifactor
PriorityWeightQOS=100000
PriorityWeightFairshare=10000
PriorityWeightAge=1000
PriorityDecayHalfLife=7-0
PreemptType=preempt/qos
PreemptMode=REQUEUE
PreemptParameters=send_user_signal
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={HEAD}
AccountingStorageEnforce=associations,limits,qos,safe
AccountingStoreFlags=job_comment"""
