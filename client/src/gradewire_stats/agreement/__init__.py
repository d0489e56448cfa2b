"""Agreement of metrics with human labels: rows, statistics, ranks, bootstrap over questions, and reports."""
