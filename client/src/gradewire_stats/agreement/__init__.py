"""Agreement with human labels: rows, their samples by part, statistics, draws of the bootstrap, the whole report."""
