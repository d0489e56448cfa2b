"""`gradewire bench load`."""
