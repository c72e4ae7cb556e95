"""Facts about Apache Nutch, taken from its source: names of commands, classes and options."""
