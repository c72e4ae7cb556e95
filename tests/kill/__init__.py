"""The kill harness: crawls that are killed, starved, stopped and crowded, and have to end as if nothing had been.

``python -m tests.kill --help``, or ``scripts/test kill``; docs/reliability.md has the guarantees and the results.

- :mod:`tests.kill.site`: the generated web that changes between rounds; it counts its requests.
- :mod:`tests.kill.points`: goes into every process of a struck command and strikes at the n-th write.
- :mod:`tests.kill.faults`: the kinds of faults, and what a schedule draws of them.
- :mod:`tests.kill.workspace`: places of table and index, and their contents.
- :mod:`tests.kill.crawl`: the commands of a crawl, as processes; the undisturbed crawl of a site.
- :mod:`tests.kill.kill_moments`: how each kind of fault is brought about.
- :mod:`tests.kill.schedule`: one schedule from its first fault to the end of its crawl.
- :mod:`tests.kill.invariants`: what must hold at any time, and what at the end.
- :mod:`tests.kill.schedule_choice`: the few schedules that run in the suite.
- :mod:`tests.kill.mutations`: defects made on purpose, which the harness has to find.
"""
