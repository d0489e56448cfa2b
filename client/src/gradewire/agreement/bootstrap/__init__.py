"""Figures in all draws of a bootstrap at once, and the bootstrap over questions itself."""
