"""The wire format of gradewire: code generated from proto/gradewire/v1 (make proto)."""
