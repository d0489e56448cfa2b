"""The chat endpoint that evaluation harnesses speak, in front of the judges."""
