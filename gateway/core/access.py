"""Who may do what: one table of permissions, and what a person is to a job."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """A person's role in the portal. To lead a group comes from Slurm, not from here."""

    RESEARCHER = "researcher"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


class Permission(StrEnum):
    """What a route can need. `public` routes are those before sign-in."""

    USE_PORTAL = "use_portal"
    SUBMIT_JOB = "submit_job"
    SEE_ALL_JOBS = "see_all_jobs"
    ACT_ON_ALL_JOBS = "act_on_all_jobs"
    SEE_HEALTH = "see_health"
    MANAGE_PEOPLE = "manage_people"
    SEE_ALL_CREDIT = "see_all_credit"
    MANAGE_CREDIT = "manage_credit"
    SEE_POLICY = "see_policy"
    MANAGE_POLICY = "manage_policy"
    MANAGE_ENVIRONMENTS = "manage_environments"
    MANAGE_DATASETS = "manage_datasets"
    MANAGE_VOLUMES = "manage_volumes"
    MANAGE_RECIPES = "manage_recipes"


_RESEARCHER = frozenset({Permission.USE_PORTAL, Permission.SUBMIT_JOB})
_OPERATOR = _RESEARCHER | {
    Permission.SEE_ALL_JOBS,
    Permission.SEE_HEALTH,
    Permission.SEE_ALL_CREDIT,
    Permission.SEE_POLICY,
}

PERMISSIONS: dict[Role, frozenset[Permission]] = {
    Role.RESEARCHER: _RESEARCHER,
    Role.OPERATOR: _OPERATOR,
    Role.ADMINISTRATOR: frozenset(Permission),
}


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks: a signed-in person with the groups that Slurm says are theirs."""

    person_id: int
    session_id: int
    login: str
    unix_user: str
    display_name: str
    role: Role
    groups: tuple[str, ...]
    leads: tuple[str, ...]
    locale: str | None = None
    timezone: str | None = None

    def may(self, permission: Permission) -> bool:
        return permission in PERMISSIONS[self.role]


@dataclass(frozen=True, slots=True)
class JobRights:
    """What a viewer may do with one job. Nothing at all means: answer 404."""

    see: bool
    read_files: bool  # script and output: the owner's own
    act: bool


def job_rights(viewer: Viewer, *, user: str, group: str) -> JobRights:
    """The owner may all; a leader of the group and an administrator may act; a member of the
    group and an operator may look. Files stay the owner's, whoever asks."""
    owner = viewer.unix_user == user
    leads = group in viewer.leads
    return JobRights(
        see=owner or leads or group in viewer.groups or viewer.may(Permission.SEE_ALL_JOBS),
        read_files=owner,
        act=owner or leads or viewer.may(Permission.ACT_ON_ALL_JOBS),
    )


@dataclass(frozen=True, slots=True)
class GroupRights:
    """What a viewer may do with a group's credit. Nothing at all means: answer 404."""

    see: bool
    steer: bool  # caps, packages, codes, loans, rules, budgets


def group_rights(viewer: Viewer, group: str) -> GroupRights:
    """Members see the group's credit and who uses it; its leaders and administrators steer it;
    an operator looks."""
    steer = group in viewer.leads or viewer.may(Permission.MANAGE_CREDIT)
    see = steer or group in viewer.groups or viewer.may(Permission.SEE_ALL_CREDIT)
    return GroupRights(see=see, steer=steer)
