"""Statistics of a fetch: histograms of responses and failures by host."""
