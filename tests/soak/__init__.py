"""A soak: a generated web of many hosts is crawled round after round, and what the crawl keeps is drawn over time.

    scripts/test soak --minutes 60 [--seed S] [--hosts N] [--pages N] [--to FOLDER]

    scripts/test soak --in-process [--rounds N]

``web`` is what a host answers, ``soaking`` serves it to the process of ``crawler``, ``measuring`` reads what that
keeps, ``verdict`` checks the numbers, ``drawing`` draws them. One seed gives one web.
"""
