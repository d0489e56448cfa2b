"""The server's settings, in groups.

To add a setting, add a field to a group, annotate it with `Setting(NAME)` and write its help as its docstring. The
groups are in `engine`, `judge`, `limits`, `transport` and `server`. `setting` derives the flag, variable and TOML key.
"""
