"""Table statistics: collector, snapshot, histograms and quantiles."""
