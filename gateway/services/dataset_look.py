"""Before anything is held: are a form's datasets there, readable, and not the person's to write?"""

from gateway.brokerclient.port import Broker
from gateway.core.access import Viewer
from gateway.core.ask import FieldProblem
from gateway.core.datasets import FIELD, Chosen
from gateway.errors import BrokerSilent, BrokerUnreachable
from gateway.services.draft import InvalidAsk
from gateway.wire.messages import FolderState

# Where the broker looks at no files it says nothing of them: the job's prologue looks there.
_NOT_LOOKED_AT = "outside"


def require(chosen: Chosen, *, viewer: Viewer, broker: Broker) -> None:
    """Asks the broker as the person. InvalidAsk with a problem for each folder that will not do;
    a broker that is away says nothing, and the prologue looks again."""
    problems = []
    for folder in chosen.folders:
        try:
            state = broker.check_folder(folder, user=viewer.unix_user)
        except (BrokerUnreachable, BrokerSilent):
            return
        code = problem_of(state)
        if code is not None:
            problems.append(FieldProblem(FIELD, code, {"path": folder}))
    if problems:
        raise InvalidAsk(tuple(problems))


def problem_of(state: FolderState) -> str | None:
    """The code of what is wrong with a folder of data, for this person."""
    if state.problem == _NOT_LOOKED_AT:
        return None
    if state.problem is not None:
        return f"dataset_{state.problem}"
    if not state.readable:
        return "dataset_not_permitted"
    return "dataset_writable" if state.writable else None
