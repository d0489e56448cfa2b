"""What is compared: answers that are scored now, or outputs of earlier runs, and which of them belong together."""
