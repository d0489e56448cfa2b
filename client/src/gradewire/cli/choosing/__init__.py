"""Which of two answers is the better one, who says so, and where that is kept."""
