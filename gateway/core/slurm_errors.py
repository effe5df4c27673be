"""Slurm's error numbers as stable codes. Numbers: slurm/slurm_errno.h of 26.05.

Codes are message keys and part of the API; a number that is not here is `slurm_refused`,
with the number in the failure.
"""

import re
from enum import Enum

UNKNOWN_CODE = "slurm_refused"


class Outcome(Enum):
    """What is known about the act after an error."""

    REFUSED = "refused"  # Slurm said no: nothing was started or changed
    NOTHING_HAPPENED = "nothing_happened"  # nobody was there to ask
    UNKNOWN = "unknown"  # it was sent; whether it was done nobody said


_CODES = {
    2000: "invalid_partition",
    2001: "invalid_partition",
    2002: "access_denied",
    2003: "partition_group_denied",
    2004: "nodes_not_in_partition",
    2005: "too_many_cpus",
    2006: "invalid_node_count",
    2007: "job_table_full",
    2009: "script_missing",
    2010: "not_owner",
    2012: "text_too_long",
    2014: "node_config_unavailable",
    2015: "partition_config_unavailable",
    2016: "nodes_busy",
    2017: "invalid_job_id",
    2018: "invalid_node_name",
    2019: "controller_cannot_write",
    2020: "job_in_transition",
    2021: "already_done",
    2024: "job_pending",
    2025: "invalid_task_count",
    2029: "invalid_feature",
    2036: "not_supported",
    2037: "operation_disabled",
    2038: "invalid_dependency",
    2039: "batch_only",
    2040: "licenses_unavailable",
    2042: "job_held",
    2044: "invalid_memory",
    2045: "invalid_account",
    2048: "invalid_licenses",
    2050: "accounting_policy",
    2051: "invalid_time_limit",
    2052: "reservation_denied",
    2053: "invalid_reservation",
    2054: "invalid_time_value",
    2056: "reservation_unusable",
    2057: "invalid_wckey",
    2063: "missing_working_directory",
    2066: "invalid_qos",
    2068: "node_unavailable",
    2069: "invalid_cpu_count",
    2070: "partition_unavailable",
    2071: "circular_dependency",
    2072: "invalid_gres",
    2073: "job_not_pending",
    2074: "qos_threshold",
    2076: "step_limit",
    2077: "job_suspended",
    2081: "invalid_array",
    2083: "job_started",
    2084: "already_done",
    2085: "job_not_running",
    2086: "job_not_pending_nor_running",
    2087: "job_not_suspended",
    2088: "job_not_finished",
    2090: "slurm_internal",
    2101: "partition_down",
    2102: "duplicate_gres",
    2105: "submissions_disabled",
    2113: "group_missing",
    2115: "invalid_tres",
    2119: "invalid_gres",
    2122: "unsupported_gres",
    2124: "invalid_time_min",
    2127: "environment_missing",
    2130: "invalid_account",
    2134: "insufficient_gres",
    2163: "group_invalid",
    2164: "group_unknown",
    2165: "user_invalid",
    2166: "user_unknown",
    2167: "invalid_account",
    8000: "missing_time_limit",
}
# Connecting failed, or the controller is a standby one, or credentials could not be made.
_NOTHING_HAPPENED = frozenset({1001, 1019, 1021, 1800, 1804, 2027, 2131, 6000, 6009, 7000})
# 1007 (authentication) comes for a reply that cannot be verified as well: the act may be done.
_UNKNOWN = frozenset(
    {1000, 1002, 1003, 1004, 1007, 1008, 1017, 1018, 1022, 1023, 1801, 1802, 1803, 1805}
    | {5003, 5004, 5005}
)
# libslurm names the limit on its error output only; the number is 2050 for all of them.
_LIMIT = re.compile(r"\b((?:Assoc|QOS)[A-Za-z]*(?:Limit|Per[A-Z][a-z]+))\b", re.ASCII)


def outcome(errno: int) -> Outcome:
    """Numbers under 1000 are the system's own (a broken pipe, a reset): nothing is certain."""
    if errno in _NOTHING_HAPPENED:
        return Outcome.NOTHING_HAPPENED
    if errno in _UNKNOWN or errno < 1000:
        return Outcome.UNKNOWN
    return Outcome.REFUSED


def code(errno: int, detail: str = "") -> str:
    """The stable code; `detail` is what libslurm printed, and narrows a policy refusal."""
    found = _CODES.get(errno, UNKNOWN_CODE)
    return _policy_code(detail) if found == "accounting_policy" else found


def known_numbers() -> tuple[int, ...]:
    """Every number that has a code of its own or an outcome other than a refusal."""
    return tuple(sorted({*_CODES, *_NOTHING_HAPPENED, *_UNKNOWN}))


def limit_name(detail: str) -> str | None:
    """The limit that Slurm named, such as AssocMaxSubmitJobLimit."""
    found = _LIMIT.search(detail)
    return found.group(1) if found else None


def _policy_code(detail: str) -> str:
    name = limit_name(detail) or ""
    group = "association" if name.startswith("Assoc") else "qos"
    if not name:
        return "accounting_policy"
    if name == "AssocGrpSubmitJobsLimit":
        # A limit of 0 closes a group: "wait until some have ended" would be wrong.
        return "group_submit_limit"
    if "Submit" in name:
        return f"{group}_submit_limit"
    if "Wall" in name or "Time" in name:
        return f"{group}_time_limit"
    return f"{group}_limit"
