"""The state as SQL has it from the events alone: a second implementation of the rules.

`entries` puts it together. Nothing here may import `coordinator`, with whose fold it is compared.
"""
