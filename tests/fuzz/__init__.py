"""Coverage-guided fuzzing of the functions that read untrusted input.

``scripts/test fuzz --minutes 10 --target html`` runs libFuzzer (atheris); without ``--target`` every target runs for
this time. A finding (an unexpected exception, excessive time or memory, a killed process) is minimized, saved, and
printed with the command that replays it. Earlier findings are in ``regressions.py``; the test suite runs them with some
inputs of each target (``test_fuzz.py``).
"""
