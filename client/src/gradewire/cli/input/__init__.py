"""What a command reads: the file, its rows, their labels."""
