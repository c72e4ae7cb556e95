"""Another program that writes a table in HBase without its due index: generate must choose what a full scan chooses.

    scripts/test foreign_writer [--minutes 60] [--seed S]

``scenarios`` holds the writes of that program, and the trial of them.
"""
