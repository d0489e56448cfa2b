"""Output of a command: result files, tables, manifests, progress, summaries."""
