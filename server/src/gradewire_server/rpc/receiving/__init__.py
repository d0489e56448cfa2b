"""What comes in, bounded before it is parsed."""
