"""The commands of ``gradewire models``."""
