"""The folder of ms-swift's plugin.

ms-swift puts the folder of a plugin first on `sys.path`. Beside `trl.py`, `import trl` would find
our adapter instead of TRL, so the plugin has a folder of its own.
"""
