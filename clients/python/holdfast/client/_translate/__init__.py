"""Translation between a program's values and the contract's messages: checks, requests, results.

Pure functions: no IO, no clock, no event loop. Knows neither how a call travels nor which shell
makes it.
"""
