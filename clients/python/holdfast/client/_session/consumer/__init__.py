"""A member's session in the heartbeat protocol (KIP-848): one call says all; the service assigns.

Pure, as the room around it. states.py is the table that everything here moves by.
"""
