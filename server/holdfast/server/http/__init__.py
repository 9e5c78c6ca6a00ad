"""The node's HTTP port: health for machines that have no certificate, and metrics.

Only `answering` loads aiohttp, and only where the port is configured.
"""
