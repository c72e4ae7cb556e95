"""A process that writes rows until it is killed, and says on standard output what was acknowledged.

``python crawl_writer.py FOLDER NAME FIRST STEP ROWS ROUNDS``: round r writes ROWS rows; every cell of a row contains r.
"""

import sys

from nutch2py.conf.configuration import Configuration
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store


def main(folder, first, step, rows, rounds):
    store = open_store(Configuration(), WebPage, f"embedded:{folder}")
    for turn in range(first, rounds, step):
        with store.batch() as batch:
            for number in range(rows):
                page = WebPage(fields=frozenset())
                page.fetch_interval = turn
                page.title = str(turn)
                page.content = f"{turn} ".encode() * (1 + number % 50)
                page.markers["_gnmrk_"] = str(turn)
                batch.put(f"com.row{number:05d}:http/", page)
        print(turn, flush=True)
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
