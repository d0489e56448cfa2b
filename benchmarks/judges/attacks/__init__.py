"""Attack judges with wrong answers that try to pass as right, and measure their success with and without guards."""
