"""`gradewire agree`: compares scores with human labels."""
