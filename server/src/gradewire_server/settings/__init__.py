"""Every setting of the server, in groups. Add one as a field: `Setting(NAME)` marks it, its docstring is its help.

Groups are in `engine`, `judge`, `limits`, `transport` and `server`; flag, variable and TOML key follow (`setting`).
"""
