"""Agreement with human labels: rows and samples, statistics, ranks, the bootstrap over questions, the whole report."""
