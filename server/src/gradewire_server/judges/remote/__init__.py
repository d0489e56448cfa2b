"""What judges behind servers have in common."""
