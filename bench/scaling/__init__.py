"""What jobs would cost on clusters that nobody has here: a model of measured costs (``scripts/bench scale``)."""
