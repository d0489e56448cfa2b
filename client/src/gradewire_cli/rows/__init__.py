"""Input of a command: files, their rows and labels."""
