"""Write a command's output: result files, tables, manifests, progress, summaries."""
