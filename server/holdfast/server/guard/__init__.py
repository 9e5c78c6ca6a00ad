"""Checks between the socket and the services: no caller may block or fill a node.

They bound sizes, numbers of items, a caller's share of the loop and of bytes in flight, and
answers.
"""
