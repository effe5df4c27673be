"""What the cluster counts and enforces, as it said last."""

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from gateway.store.facts_models import AccountingFactsNow
from gateway.wire import codec
from gateway.wire import messages as m

_NAME = "slurm"


def get(session: Session) -> m.AccountingFacts | None:
    """None: it has never said."""
    facts = session.scalar(select(AccountingFactsNow.facts))
    return None if facts is None else codec.parse(m.AccountingFacts, facts)


def put(session: Session, facts: m.AccountingFacts) -> None:
    dumped = codec.dump(facts)
    if session.scalar(select(AccountingFactsNow.facts)) == dumped:
        return
    session.execute(delete(AccountingFactsNow))
    session.execute(insert(AccountingFactsNow).values(name=_NAME, facts=dumped))
