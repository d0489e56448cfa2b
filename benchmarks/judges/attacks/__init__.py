"""Attack judges with wrong answers that try to pass as right, with and without guards."""
