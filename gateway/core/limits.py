"""Who may change a running job's time limit, and by how much."""


def time_limit_refusal(
    *, current: int | None, wanted: int, pending: bool, partition_max: int | None
) -> str | None:
    """A code, or None when the change is allowed. Minutes; None means no limit.

    Lowering is always the person's right. Raising is allowed only while the job waits, and
    never above the partition's maximum: a running job that may grow spoils every forecast.
    """
    if wanted < 1:
        return "invalid_time_limit"
    if current is None or wanted <= current:
        return None
    if not pending:
        return "time_limit_raise"
    if partition_max is not None and wanted > partition_max:
        return "time_limit_raise"
    return None


def extension_refusal(
    *, current: int | None, wanted: int, running: bool, partition_max: int | None
) -> str | None:
    """The same for an application that runs: people sit before it, so it may grow where the portal
    says so, up to the partition's maximum. It is never made shorter by this."""
    if not running:
        return "job_not_running"
    if current is None or wanted <= current:
        return "invalid_time_limit"
    if partition_max is not None and wanted > partition_max:
        return "time_limit_raise"
    return None


def partition_refusal(
    *,
    nodes: int,
    minutes: int,
    partition_nodes: int,
    max_nodes: int | None,
    max_minutes: int | None,
) -> str | None:
    """A code when a job could never start in this partition as it is, else None.

    Without EnforcePartLimits Slurm accepts such a job and lets it wait for ever.
    """
    if nodes > partition_nodes or (max_nodes is not None and nodes > max_nodes):
        return "invalid_node_count"
    if max_minutes is not None and minutes > max_minutes:
        return "invalid_time_limit"
    return None
