import re
import signal
import threading
import time

import pytest

from nutch2py.parser.time_limit import TimeLimitExceeded, time_limit


def test_a_sleep_is_interrupted_in_the_main_thread() -> None:
    with pytest.raises(TimeLimitExceeded), time_limit(0.05):
        time.sleep(60)


def test_a_runaway_regular_expression_is_interrupted_in_the_main_thread() -> None:
    with pytest.raises(TimeLimitExceeded), time_limit(0.05):
        re.match(r"(a+)+$", "a" * 60 + "b")


def test_work_within_the_limit_goes_on_and_the_former_handler_is_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(60):
        done = sum(range(1000))
    assert done == 499500
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_no_limit_when_it_is_not_positive() -> None:
    with time_limit(-1):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_endless_work_in_another_thread_is_interrupted() -> None:
    results: list[str] = []

    def work() -> None:
        for _ in range(2):
            try:
                with time_limit(0.05):
                    while True:
                        pass
            except TimeLimitExceeded:
                results.append("interrupted")
        with time_limit(60):
            results.append("done")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(30)
    assert results == ["interrupted", "interrupted", "done"]
