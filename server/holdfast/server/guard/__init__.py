"""What stands between the socket and the services: no caller may hold up or fill a node.

Sizes, numbers of items, a caller's share of the loop and of what is in flight, sizes of answers.
"""
