"""What a member of a group is, and what each answer, each failure and the time mean to it.

Pure: no IO, no clock, no threads, no chance. All times come in as arguments, and what is to be done
comes out as values (session_io.py), which a shell performs.
"""
