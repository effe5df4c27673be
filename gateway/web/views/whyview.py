"""Why a job does not start yet, as its page and the API show it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import url_for
from markupsafe import Markup, escape

from gateway.core.caps import KEYS, Way
from gateway.core.maintenance import Clash
from gateway.core.usage import Freed, Ref, Users
from gateway.core.whyhelp import Help
from gateway.core.whynot import Out, Use, Why
from gateway.services.why_not import why_not
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.policy_words import counted, resource_name
from gateway.web.show import limit_typed, minutes_words, moment
from gateway.web.texts import gettext, ngettext
from gateway.web.views.jobview import JobView
from gateway.web.why_texts import HELP_TEXTS, LIMIT_TEXTS, UNKNOWN_TEXTS

_PRODUCTS = frozenset({Way.MINUTES, Way.SHARED_MINUTES, Way.SPENT})
_HOUR = 60


@dataclass(frozen=True, slots=True)
class RefView:
    number: str
    url: str
    user: str
    amount: str
    ends: datetime | None


@dataclass(frozen=True, slots=True)
class UserView:
    """`who` of a line; `refs` are some of the jobs, `more` counts the others."""

    who: str
    jobs: int
    amount: str
    refs: list[RefView]
    more: int


@dataclass(frozen=True, slots=True)
class HelpView:
    """`url` with `button`: what does it at once, where one may."""

    text: str
    url: str = ""
    button: str = ""


@dataclass(frozen=True, slots=True)
class WhyView:
    """`never`: the sentence that stands for the reason's own, of a job that cannot start as it is.
    `lines` are sentences, the limit first. `share` is what is used of it, in percent."""

    never: str
    lines: list[Markup]
    share: float | None
    used_title: str
    users: list[UserView]
    freed: Markup | None
    freed_refs: list[RefView]
    freed_more: int
    out: tuple[Out, ...]
    helps: list[HelpView]
    unknown: list[str]

    @property
    def says_more(self) -> bool:
        return bool(self.lines or self.users or self.freed or self.helps or self.unknown)


def build(page: JobView) -> WhyView | None:
    """None for a job that does not wait, or that Slurm's queue does not have any more."""
    found = read(page)
    return None if found is None else _view(found, page)


def read(page: JobView) -> Why | None:
    if page.detail.left_queue_at is not None:
        return None
    with deps().read() as session:
        return why_not(session, page.detail, viewer=viewer(), now=deps().clock())


def as_json(found: Why | None) -> dict[str, Any]:
    """Codes and numbers for programs, `text` for people."""
    if found is None:
        return {"waits": False}
    use = found.use
    return {
        "waits": True,
        "key": found.key,
        "reason": found.word,
        "never": found.never,
        "limit": None if use is None else _limit_json(use),
        "users": [_users_json(one) for one in found.users],
        "free_at": found.freed.at if found.freed else None,
        "begins": found.begins,
        "reservation": found.clash,
        "helps": [{"code": one.code, "text": _help(one), "facts": one} for one in found.helps],
        "unknown": found.unknown,
    }


def clash_line(clash: Clash) -> Markup:
    """What a reservation means for a job that would run into it."""
    what = gettext("the maintenance") if clash.is_maintenance else gettext("a reservation")
    if clash.fits_minutes is None:
        text = gettext(
            "The nodes are kept for %(what)s from %(start)s to %(end)s: it starts after that."
        )
        return filled(text, what=what, start=moment(clash.start), end=moment(clash.end))
    text = gettext(
        "%(what)s begins at %(start)s and the time limit reaches into it: as it is, the job waits"
        " until %(end)s. A limit of %(time)s still fits before."
    )
    words = minutes_words(clash.fits_minutes)
    what = what[:1].upper() + what[1:]
    return filled(text, what=what, start=moment(clash.start), end=moment(clash.end), time=words)


def filled(text: str, **facts: object) -> Markup:
    """A sentence around moments, which are HTML already."""
    return escape(text) % facts


def _view(found: Why, page: JobView) -> WhyView:
    use, freed = found.use, found.freed
    refs = [_ref(one, use) for one in freed.refs] if freed else []
    never = gettext(
        "As it is, this job can never start: the limit does not allow it even when nothing else"
        " runs."
    )
    return WhyView(
        never=never if found.never else "",
        lines=_lines(found),
        share=_share(use),
        used_title=gettext("Holds") if use and not _is_jobs(use) else "",
        users=[_user(one, use) for one in found.users],
        freed=_freed(freed, use) if freed else None,
        freed_refs=refs,
        freed_more=freed.others if freed else 0,
        out=found.out,
        helps=[_help_view(one, page) for one in found.helps],
        unknown=[str(UNKNOWN_TEXTS[code]) for code in found.unknown],
    )


def _lines(found: Why) -> list[Markup]:
    lines = [] if found.use is None else [escape(text) for text in _use_lines(found.use)]
    if found.space is not None and found.key != "none":
        lines.append(_space(found))
    if found.clash is not None:
        lines.append(clash_line(found.clash))
    if found.begins is not None:
        lines.append(filled(gettext("It asked to begin at %(at)s."), at=moment(found.begins)))
    if found.after is not None:
        lines.append(escape(gettext("It waits for job %(number)s.", number=found.after)))
    if found.at_once is not None:
        text = ngettext("%(num)d task at a time.", "%(num)d tasks at a time.", found.at_once)
        lines.append(escape(text))
    if found.state is not None:
        lines.append(escape(gettext("Slurm calls the partition %(state)s.", state=found.state)))
    return lines


def _use_lines(use: Use) -> list[str]:
    text = LIMIT_TEXTS[use.holder, use.key]
    lines = [text % {"name": use.name, "limit": _amount(use, use.limit)}]
    if use.used is not None and use.asked is not None:
        lines.append(
            gettext(
                "%(used)s taken, and this job asks for %(asked)s.",
                used=_amount(use, use.used),
                asked=_amount(use, use.asked),
            )
        )
    elif use.used is not None:
        lines.append(gettext("%(used)s taken.", used=_amount(use, use.used)))
    elif use.asked is not None:
        lines.append(gettext("This job asks for %(asked)s.", asked=_amount(use, use.asked)))
    return lines


def _space(found: Why) -> Markup:
    space = found.space
    assert space is not None
    text = gettext(
        "It needs room on %(needed)s; now there is room for that on %(fitting)s. Free in the"
        " partition: %(gpus)s.",
        needed=ngettext("%(num)d node", "%(num)d nodes", space.needed),
        fitting=ngettext("%(num)d node", "%(num)d nodes", space.fitting),
        gpus=_gpus(space.free_gpus),
    )
    return escape(text)


def _freed(freed: Freed, use: Use | None) -> Markup:
    amount = _amount(use, freed.amount) if use else _gpus(freed.amount)
    if use is None:
        text = gettext(
            "By %(at)s at the latest %(amount)s more are free, which is enough unless others take"
            " them first:"
        )
    else:
        text = gettext("By %(at)s at the latest %(amount)s of it are free again, which is enough:")
    return filled(text, at=moment(freed.at), amount=amount)


def _user(one: Users, use: Use | None) -> UserView:
    if one.user is None:
        who = gettext("others, whose jobs you may not see")
    else:
        who = gettext("%(user)s (you)", user=one.user) if one.own else one.user
    refs = [_ref(ref, use) for ref in one.refs]
    amount = _amount(use, one.amount) if use else _gpus(one.amount)
    return UserView(who, one.jobs, amount, refs, one.jobs - len(refs) if refs else 0)


def _ref(one: Ref, use: Use | None) -> RefView:
    amount = _amount(use, one.amount) if use else _gpus(one.amount)
    return RefView(one.number, url_for("jobs.show", job_id=one.id), one.user, amount, one.ends)


def _share(use: Use | None) -> float | None:
    if use is None or use.used is None or not use.limit:
        return None
    return min(100.0, round(use.used / use.limit * 100, 1))


def _is_jobs(use: Use) -> bool:
    return use.key in KEYS and KEYS[use.key][0] in {Way.RUNNING, Way.QUEUED}


def _amount(use: Use, number: int) -> str:
    """In the limit's own unit: 8 GPUs, 3 jobs, 2 days, 96 GPUs × hours."""
    way = KEYS[use.key][0] if use.key in KEYS else None
    if use.key == "max_nodes":
        return ngettext("%(num)d node", "%(num)d nodes", number)
    if use.key in {"max_time_minutes", "max_wall_minutes", "grp_wall_minutes"}:
        return minutes_words(number)
    if _is_jobs(use):
        return ngettext("%(num)d job", "%(num)d jobs", number)
    if way in _PRODUCTS:
        hours = f"{number / _HOUR:,.1f}".removesuffix(".0")
        return gettext("%(n)s %(what)s × hours", n=hours, what=resource_name(use.tres))
    return counted(use.tres, number)


def _gpus(number: int) -> str:
    return ngettext("%(num)d GPU", "%(num)d GPUs", number)


def _help(one: Help) -> str:
    facts: dict[str, str] = {"name": one.name or ""}
    if one.gpus is not None:
        facts["gpus"] = _gpus(one.gpus)
    if one.nodes is not None:
        facts["nodes"] = ngettext("%(num)d node", "%(num)d nodes", one.nodes)
    if one.minutes is not None:
        facts["time"] = minutes_words(one.minutes)
    text = HELP_TEXTS[one.code] % facts
    free_now = gettext("So much is free now.")  # apart: none is found within an f-string
    return f"{text} {free_now}" if one.free_now else text


def _help_view(one: Help, page: JobView) -> HelpView:
    """With a button where this person may do it, and Slurm takes it from here."""
    action = {"release": "release", "cancel": "cancel", "shorter": "time-limit"}.get(one.code, "")
    offered: Mapping[str, str] = {act.name: act.word for act in page.actions}
    if action in offered:
        typed = limit_typed(one.minutes) if one.minutes is not None else None
        url = url_for("jobs.confirm", job_id=page.job.id, action=action, time_limit=typed)
        return HelpView(_help(one), url, offered[action])
    if page.again and one.code in {"fewer_gpus", "fewer_nodes", "more", "other_qos"}:
        source: dict[str, Any] = {"from": page.again}  # a word of Python's own
        again = gettext("Submit again with changes")
        return HelpView(_help(one), url_for("submit.new", **source), again)
    return HelpView(_help(one))


def _limit_json(use: Use) -> dict[str, Any]:
    return {
        "holder": use.holder.value,
        "name": use.name,
        "field": use.key,
        "resource": use.tres,
        "limit": use.limit,
        "used": use.used,
        "asked": use.asked,
        "text": " ".join(_use_lines(use)),
    }


def _users_json(one: Users) -> dict[str, Any]:
    jobs = [{"id": ref.id, "number": ref.number, "ends": ref.ends} for ref in one.refs]
    return {"user": one.user, "jobs": one.jobs, "amount": one.amount, "some": jobs}
