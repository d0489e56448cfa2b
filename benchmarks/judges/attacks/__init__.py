"""Attack judges with wrong answers that try to pass as right, and measure the success with and without guards."""
