"""The output file in pieces. Reading it asks the broker for a file, never slurmctld."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, NotFound, Refused
from gateway.services import output
from gateway.store.queries import job as reads
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.messages import error_sentence
from gateway.web.show import plain_block
from gateway.web.texts import gettext
from gateway.web.views.jobview import JobView
from gateway.wire.messages import FileChunk

TAIL_BYTES = 60_000
LONGEST_COUNT = 6
MOST_PIECES = 4096  # of 64 KiB: a download ends at 256 MB, for more there is the file itself


@dataclass(frozen=True, slots=True)
class First:
    """What the page holds before the follower has asked. Without JavaScript a link fills it."""

    text: str
    next_offset: int
    note: str
    empty: str
    unread: str
    skipped: bool
    next_look: int


def first(job_id: int, page: JobView, *, look: str) -> First:
    """Normally nothing: the page must not wait for a file. The follower begins at once.

    `look` counts the looks without JavaScript: a link to the address that a browser shows
    already, with a place in it, would only scroll.
    """
    empty = (
        gettext("Nothing has been written yet. It appears here by itself.")
        if page.active
        else gettext("The job has written nothing.")
    )
    looks = int(look) if look.isascii() and look.isdigit() and len(look) < LONGEST_COUNT else 0
    unread = gettext("“Refresh” shows the end of what the job has written.")
    if not look or not page.rights.read_files:
        return First("", -TAIL_BYTES, "", empty, unread, skipped=False, next_look=1)
    found = piece(job_id, -TAIL_BYTES)
    return First(
        text=found["text"],
        next_offset=found["next_offset"],
        note=found["note"],
        empty=empty,
        unread=gettext("Nothing has been written yet.") if page.active else empty,
        skipped=bool(found["skipped"]),
        next_look=looks + 1,
    )


def piece(job_id: int, offset: int) -> dict[str, Any]:
    """The text from `offset` on, as JSON for the follower. `restarted`: the file is shorter
    than it was, so it was written anew."""
    try:
        chunk = _read(job_id, offset)
    except (Refused, BrokerRefused) as error:
        if isinstance(error, Refused) and error.code == "not_owner_of_files":
            raise NotFound(f"output of job {job_id}") from error
        quiet = error.code == "file_missing"
        return _nothing(job_id, offset, "" if quiet else error_sentence(error))
    except (BrokerUnreachable, BrokerSilent):
        return _nothing(job_id, offset, gettext("The file cannot be read now. Trying again."))
    restarted = 0 <= chunk.size < offset
    if restarted:
        chunk = _read(job_id, 0)
    return {
        "text": plain_block(chunk.text),
        "next_offset": chunk.next_offset,
        "ended": not _active(job_id),
        "more": chunk.next_offset < chunk.size,
        "restarted": restarted,
        "skipped": offset < 0 and chunk.offset > 0,
        "note": "",
    }


def whole(job_id: int) -> Iterator[str]:
    """The file from its beginning, piece by piece; the first piece is read at once, so that an
    error is still a page."""
    have, who = deps(), viewer()  # now: the pieces are sent when the request is over
    chunk = _read(job_id, 0)

    def pieces(chunk: FileChunk) -> Iterator[str]:
        for _ in range(MOST_PIECES):
            yield chunk.text
            if chunk.next_offset >= chunk.size or not chunk.text:
                return
            chunk = output.read(
                job_id,
                viewer=who,
                begin=have.read,
                broker=have.broker,
                offset=chunk.next_offset,
            )

    return pieces(chunk)


def _read(job_id: int, offset: int) -> FileChunk:
    have = deps()
    return output.read(job_id, viewer=viewer(), begin=have.read, broker=have.broker, offset=offset)


def _nothing(job_id: int, offset: int, note: str) -> dict[str, Any]:
    return {
        "text": "",
        "next_offset": offset,
        "ended": not _active(job_id),
        "more": False,
        "restarted": False,
        "skipped": False,
        "note": note,
    }


def _active(job_id: int) -> bool:
    with deps().read() as session:
        found = reads.job(session, job_id)
    return found is not None and found.row.active
