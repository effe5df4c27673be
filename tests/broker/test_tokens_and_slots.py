"""Locks between processes; the other process is a thread with a file of its own here."""

import contextlib
import os
import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.broker import tokens as tokens_module
from gateway.broker.acts import Act, ActsLog
from gateway.broker.slots import Slots
from gateway.broker.tokens import Tokens
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable

TOKEN = "0123456789abcdef"


def test_a_token_is_new_once(tmp_path):
    tokens = Tokens(tmp_path / "t")
    with tokens.claimed(TOKEN) as claim:
        assert not claim.seen_before
    with tokens.claimed(TOKEN) as claim:
        assert claim.seen_before
        assert claim.began == pytest.approx(time.time(), abs=60)


@pytest.mark.parametrize(
    "bad", ["", "short", "../../../etc/cron.d/x", "a" * 65, "tok en-tok", "é" * 9]
)
def test_what_is_no_token_names_no_file(tmp_path, bad):
    with pytest.raises(BrokerRefused), Tokens(tmp_path / "t").claimed(bad):
        pass


def test_a_second_submit_waits_for_the_first(tmp_path):
    tokens, order = Tokens(tmp_path / "t"), []

    def submit(name):
        with tokens.claimed(TOKEN) as claim:
            order.append((name, claim.seen_before))
            time.sleep(0.05)
            order.append((name, "done"))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(submit, "ab"))
    assert order[0][0] == order[1][0]
    assert order[1][1] == "done"
    # Whoever came second must look into the queue.
    assert order[2][1] is True


def test_a_token_that_is_being_submitted_is_neither_claimed_nor_denied(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens_module, "_PATIENCE_SECONDS", 0.02)
    tokens = Tokens(tmp_path / "t")
    with tokens.claimed(TOKEN):
        with pytest.raises(BrokerSilent), tokens.claimed(TOKEN):
            pass
        with pytest.raises(BrokerSilent), tokens.at_rest(TOKEN):
            pass
    with tokens.at_rest(TOKEN), tokens.at_rest("another-token"):
        pass


def test_old_tokens_are_forgotten(tmp_path):
    tokens = Tokens(tmp_path / "t")
    for name in ("old-old-old", "new-new-new"):
        with tokens.claimed(name):
            pass
    os.utime(tmp_path / "t" / "old-old-old", (0, 0))
    tokens.forget_old()
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["new-new-new"]


def test_there_are_so_many_slots_and_no_more(tmp_path):
    slots = Slots(tmp_path / "s", count=2, patience_seconds=0.02)
    with slots.taken(), slots.taken(), pytest.raises(BrokerUnreachable), slots.taken():
        pass
    with slots.taken(), slots.taken():
        pass


def test_a_slot_is_waited_for(tmp_path):
    slots, free = Slots(tmp_path / "s", count=1, patience_seconds=5), threading.Event()

    def hold():
        with slots.taken():
            free.set()
            time.sleep(0.05)

    thread = threading.Thread(target=hold)
    thread.start()
    free.wait()
    with slots.taken():
        pass
    thread.join()


def test_nobody_waits_behind_a_slurm_that_hangs(tmp_path):
    slots = Slots(tmp_path / "s", count=1, patience_seconds=60)
    with slots.taken():
        os.utime(tmp_path / "s" / "slot-0", (time.time() - 5, time.time() - 5))
        began = time.monotonic()
        with pytest.raises(BrokerUnreachable), slots.taken():
            pass
        assert time.monotonic() - began < 1


def test_tokens_that_the_log_names_are_remembered_after_a_crash(tmp_path):
    log = ActsLog(tmp_path / "acts.log")
    log.begin(Act("submit", 0, 1, "nlp-1", token=TOKEN))
    log.begin(Act("submit", 0, 1, "nlp-1", token="../escape"))
    log.begin(Act("cancel", 0, 1, "nlp-1", job_id=5))
    with (tmp_path / "acts.log").open("a") as file:
        file.write('{"event": "begin", "verb": "subm')
    assert log.recent_tokens() == {TOKEN}
    tokens = Tokens(tmp_path / "t")
    tokens.remember(log.recent_tokens())
    with tokens.claimed(TOKEN) as claim:
        assert claim.seen_before
    assert ActsLog(tmp_path / "none.log").recent_tokens() == frozenset()


def test_a_line_that_a_full_disk_cut_stops_the_act_and_hides_no_later_one(tmp_path):
    log, path = ActsLog(tmp_path / "acts.log"), tmp_path / "acts.log"
    log.begin(Act("cancel", 0, 1, "nlp-1", job_id=5))
    with files_end_at(path.stat().st_size + 20), pytest.raises(BrokerUnreachable):
        log.begin(Act("submit", 0, 1, "nlp-1", token="cut-cut-cut"))
    log.begin(Act("submit", 0, 1, "nlp-1", token=TOKEN))
    assert log.recent_tokens() == {TOKEN}


def test_a_token_that_cannot_be_noted_is_not_sent(tmp_path):
    tokens = Tokens(tmp_path / "t")
    (tmp_path / "t" / TOKEN).symlink_to("/dev/full")
    (tmp_path / "t" / "another-token").mkdir()
    for token in (TOKEN, "another-token"):
        with pytest.raises(BrokerUnreachable), tokens.claimed(token):
            pass


def test_what_the_broker_keeps_is_nobody_elses(tmp_path):
    ActsLog(tmp_path / "log" / "acts.log").begin(Act("cancel", 0, 1, "nlp-1", job_id=5))
    with (
        Tokens(tmp_path / "tokens").claimed(TOKEN),
        Slots(tmp_path / "slots", count=1, patience_seconds=1).taken(),
    ):
        made = [path for path in tmp_path.rglob("*") if path.stat().st_mode & 0o077]
    assert made == []


@contextlib.contextmanager
def files_end_at(size):
    """As on a full disk: what goes over is cut, and what begins there is an error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
