"""SMILE and its presets."""
