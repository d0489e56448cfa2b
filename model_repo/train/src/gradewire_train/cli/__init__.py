"""The commands of ``gradewire models train``."""
