"""`gradewire bench pairs`: which of two answers people prefer."""
