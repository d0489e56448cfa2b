"""Parse mathematical objects (sets, intervals, matrices, formulas), and compare them by meaning."""
