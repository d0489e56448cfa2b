"""`gradewire prompt`: what judges are shown."""
