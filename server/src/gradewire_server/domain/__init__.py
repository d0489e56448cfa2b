"""What every room of the server speaks: items, needs, answers, results. Pure types, no I/O."""
