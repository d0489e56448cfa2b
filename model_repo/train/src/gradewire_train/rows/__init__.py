"""The rows that a grader is trained on."""
