"""The output file of a job, read by the broker as the job's owner."""

from gateway.brokerclient.port import Broker
from gateway.core.access import Viewer, job_rights
from gateway.errors import BrokerRefused, NotFound, Refused
from gateway.store import jobs
from gateway.store.uow import Begin
from gateway.wire.messages import FileChunk

MAX_BYTES = 64 * 1024


def read(job_id: int, *, viewer: Viewer, begin: Begin, broker: Broker, offset: int) -> FileChunk:
    """A piece from `offset` on, negative from the end; an empty one while an active job has
    written nothing. NotFound, Refused or a broker error."""
    with begin() as session:
        job = jobs.owner(session, job_id)
    if job is None:
        raise NotFound("job")
    rights = job_rights(viewer, user=job.user, group=job.group)
    if not rights.see:
        raise NotFound("job")
    if not rights.read_files:
        raise Refused("not_owner_of_files")
    if job.output is None:
        raise Refused("output_unknown")
    try:
        return broker.read_file(job.output, user=job.user, offset=offset, max_bytes=MAX_BYTES)
    except BrokerRefused as error:
        if error.code == "file_missing" and job.active:
            return FileChunk(text="", offset=max(offset, 0), next_offset=offset, size=0)
        raise
