"""Every setting of the server, in groups. A setting is added as a field: `Setting(NAME)` marks it, its docstring helps.

Groups are in `engine`, `judge`, `limits`, `transport` and `server`; flag, variable and TOML key follow (`setting`).
"""
