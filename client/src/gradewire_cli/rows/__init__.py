"""Read input files, rows and labels."""
