"""Write a command's output: result files, tables, manifests, progress and summaries."""
