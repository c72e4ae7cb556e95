"""Statistics of a fetch: histograms and failures by host."""
