"""What a command writes: files, tables, progress, summaries."""
