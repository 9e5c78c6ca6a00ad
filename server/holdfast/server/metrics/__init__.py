"""Metrics: counted as plain numbers where things happen, translated when somebody asks.

Only `exposition` loads prometheus_client. No label has the name of a group, member or topic.
"""
