"""A member's session: how it reacts to each answer, each failure and the passing of time.

Pure: no IO, no clock, no threads, no chance. All times come in as arguments. Actions come out as
values (session_io.py), which a shell performs.
"""
