"""No sequence of events makes two jobs of one submission."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import select

from gateway.errors import Refused
from gateway.services import act
from gateway.store.models import Base, Submission
from gateway.store.uow import make_begin, make_engine
from gateway.testing.portal import portal


class Dies(Exception):
    """A process ends here, and nothing after it is done."""


class Submissions(RuleBasedStateMachine):
    """Faults of every kind, at any moment, between a person, the outbox, the poll and Slurm."""

    @initialize()
    def start(self):
        self.engine = make_engine("sqlite://")
        Base.metadata.create_all(self.engine)
        self.begin = make_begin(self.engine)
        self.site = portal(self.begin)
        self.ids: set[int] = set()
        self.withdrawn: set[int] = set()

    @rule(key=st.sampled_from(["one", "two"]))
    def post(self, key):
        self._alive(lambda: self.ids.add(self.site.submit(key=key)))

    @rule()
    def outbox(self):
        self._alive(self.site.deliver_due)

    @rule(seconds=st.sampled_from([1.0, 5.0, 40.0, 130.0, 400.0]))
    def time_passes(self, seconds):
        self.site.broker.advance(seconds)

    @rule()
    def polled(self):
        self._alive(self.site.poll)

    @rule()
    def ingested(self):
        self._alive(self.site.ingest)

    @rule(fault=st.sampled_from(["before", "after", "no"]))
    def fault(self, fault):
        broker = self.site.broker
        {
            "before": broker.silent_before_next,
            "after": broker.silent_after_next,
            "no": lambda: broker.refuse_next("invalid_qos"),
        }[fault]()

    @rule(away=st.booleans())
    def broker_goes_or_comes(self, away):
        self.site.broker.unreachable = away

    @rule(after=st.booleans())
    def the_sender_dies(self, after):
        broker = self.site.broker

        def dies(request):
            del broker.submit
            if after:
                broker.submit(request)
            raise Dies

        broker.submit = dies

    @rule(key=st.integers(1, 2))
    def withdraw(self, key):
        if key not in self.ids:
            return
        try:
            act.withdraw(key, viewer=self.site.viewer, begin=self.begin, now=self.site.now)
            self.withdrawn.add(key)
        except Refused:
            pass

    @rule(job=st.integers(1, 4))
    def ends(self, job):
        found = self.site.broker.jobs.get(job)
        if found is not None and not found.ended:
            self.site.broker.finish(job)

    @invariant()
    def no_token_has_two_jobs(self):
        tokens = [job.request.token for job in self.site.broker.jobs.values()]
        assert len(tokens) == len(set(tokens))
        assert len(tokens) <= 2  # one for each form

    @invariant()
    def what_was_withdrawn_has_no_job(self):
        tokens = {job.request.token for job in self.site.broker.jobs.values()}
        for submission_id in self.withdrawn:
            assert self.site.submission(submission_id).token not in tokens

    def teardown(self):
        if not hasattr(self, "site"):
            return
        broker = self.site.broker
        broker.__dict__.pop("submit", None)
        broker.unreachable = False
        self.site.broker._faults.clear()
        self.site.run_outbox(seconds=2400, step=20.0)
        tokens = {job.request.token for job in broker.jobs.values()}
        for submission_id in self.ids:
            row = self.site.submission(submission_id)
            assert row.state in {"accepted", "refused", "withdrawn"}
            assert (row.state == "accepted") == (row.token in tokens)
        self.engine.dispose()

    def _alive(self, work):
        try:
            work()
        except Dies:
            # What was stored before the death is all that is left of the request.
            with self.begin() as session:
                self.ids |= set(session.scalars(select(Submission.id)))


TestSubmissions = Submissions.TestCase
TestSubmissions.settings = settings(
    max_examples=20,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
