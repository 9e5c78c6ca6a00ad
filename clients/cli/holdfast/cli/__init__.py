"""The `holdfast` command: a program on the client.

`entry` is its door, `main` its commands. Nothing is imported here: `python -m holdfast.cli` runs
this while the working directory may still come before every package (`__main__`).
"""
