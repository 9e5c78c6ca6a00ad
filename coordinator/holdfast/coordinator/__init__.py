"""The core: who is in the group, and who owns what. Pure: no clock, no randomness, no IO.

`kernel.decide` chooses events for a command, `kernel.evolve` folds an event into the state.
Everything here is the standard library and plain values, so that a node, a test, a debugger and a
Spark worker run the same rules and get the same answers.
"""
