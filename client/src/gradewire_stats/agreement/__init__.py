"""Agreement with human labels: rows, draws of the bootstrap, statistics, cells of a table, and the whole report."""
