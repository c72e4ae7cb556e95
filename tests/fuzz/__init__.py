"""Coverage-guided fuzzing of the functions that read untrusted input.

``scripts/test fuzz --minutes 10 --target html`` runs libFuzzer (atheris); without ``--target`` every target has so many
minutes. What it finds (an exception that is none of the target's answers, too much time or memory, a process that dies)
is made smaller, saved, and printed with the command that replays it. What was found once stands in ``found.py``, and is
tried by the suite with some inputs of each target (``test_fuzz.py``).
"""
