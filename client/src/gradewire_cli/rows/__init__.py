"""Read input: files, their rows and labels."""
