"""Environments for the sample site: one that works, one whose builds miss a card, one retired."""

from datetime import datetime, timedelta
from typing import Any

from gateway.core.access import Role, Viewer
from gateway.core.environments import Environment
from gateway.services import environment_publish as publishing
from gateway.store import environments as store
from gateway.store import people, site_jobs
from gateway.store.environments import CheckRow
from gateway.store.uow import Begin

CARDS = {"a100": "8.0", "h100": "9.0", "rtx4090": "8.9"}
DRIVER = "570.86"
TORCH: dict[str, Any] = {
    "versions": {"cuda": "12.8", "python": "3.12", "torch": "2.13.0", "transformers": "5.6.0"},
    "archs": {"torch": ["sm_80", "sm_89", "sm_90"]},
    "min_driver": "535",
    "kit": ["jupyter", "tensorboard"],
}
# Its FlashAttention was built for the cards of data centres alone.
FLASH: dict[str, Any] = {
    "versions": {"cuda": "12.6", "torch": "2.9.1", "flash_attn": "2.8.3", "deepspeed": "0.19.0"},
    "archs": {"torch": ["sm_80", "sm_89", "sm_90"], "flash_attn": ["sm_80", "sm_90"]},
}
STEPS = ("import torch", "two processes add up", "multiply on each card")


def fill_environments(begin: Begin, *, now: datetime) -> None:
    """With checks on three types of card: two work, one fails where the build is not for it."""
    admin, leader = (_viewer(begin, login) for login in ("admin", "nlp-lead"))
    for name, title, facts, group, who in (
        ("torch-2.13", "PyTorch 2.13 with Transformers and JupyterLab", TORCH, "", admin),
        ("flash-zero3", "DeepSpeed with FlashAttention", FLASH, "", admin),
        ("nlp-vllm", "Serving, of the group's own", {}, "nlp", leader),
        ("torch-2.1", "PyTorch 2.1", {}, "", admin),
    ):
        table = {
            "name": name,
            "kind": "venv",
            "path": f"/opt/envs/{name}",
            "title": {"en": title, "zh_Hans": title},
            "facts": facts,
        }
        made = publishing.publish(table, group=group, viewer=who, begin=begin, file=(), now=now)
        if facts:
            for n, gpu_type in enumerate(CARDS):
                _check(begin, made, gpu_type, admin, now - timedelta(hours=3 + n))
    publishing.retire("torch-2.1", viewer=admin, begin=begin, now=now)


def _viewer(begin: Begin, login: str) -> Viewer:
    with begin() as session:
        person = people.by_login(session, login)
        assert person is not None
        member = people.memberships(session, person.unix_user)
    return Viewer(
        person_id=person.id, session_id=0, login=login, unix_user=person.unix_user,
        display_name=person.display_name, role=Role(person.role), groups=member.groups,
        leads=member.leads,
    )  # fmt: skip


def _check(
    begin: Begin, environment: Environment, gpu_type: str, viewer: Viewer, at: datetime
) -> None:
    archs = environment.facts.archs.get("flash_attn", ())
    ok = not archs or f"sm_{CARDS[gpu_type].replace('.', '')}" in archs
    steps = [{"name": name, "ok": True, "seconds": 2.5, "text": ""} for name in STEPS]
    if archs:
        text = "" if ok else "exit code 1: no kernel image is available for this card"
        steps.append({"name": "FlashAttention", "ok": ok, "seconds": 4.0, "text": text})
    with begin() as session:
        made = site_jobs.reserve(
            session, kind="environment", subject=f"{environment.name}@{gpu_type}",
            form_key=f"{environment.name}-{gpu_type}", person_id=viewer.person_id,
            facts={}, now=at,
        )  # fmt: skip
        assert made is not None
        site_jobs.finish(
            session, made, state="done" if ok else "failed", code=None, result=None, now=at
        )
        store.add_check(
            session,
            CheckRow(
                environment=environment.name, gpu_type=gpu_type, site_job_id=made, at=at, ok=ok,
                code=None if ok else "check_failed", driver=DRIVER, capability=CARDS[gpu_type],
                fingerprint=publishing.fingerprint(environment), seconds=41.0, steps=steps,
                found={"versions": dict(environment.facts.versions)},
            ),
        )  # fmt: skip
