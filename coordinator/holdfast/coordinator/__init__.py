"""The core: who is in the group, and who owns what. Pure: no clock, no randomness, no IO.

`decide(state, volatile, command)` chooses events, `evolve(state, event)` folds one into state.
Everything here is the standard library and plain values, so that a node, a test, a debugger and a
Spark worker run the same rules and get the same answers.
"""
