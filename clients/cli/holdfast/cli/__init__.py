"""The `holdfast` command: a program on the client.

`entry` is its entry point, `main` has its commands. Nothing is imported here: `python -m
holdfast.cli` runs this while the working directory may still shadow our packages (`__main__`).
"""
