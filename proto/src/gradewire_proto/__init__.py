"""The wire format of gradewire, generated from proto/gradewire/v1 (`make proto`), and its conventions."""
