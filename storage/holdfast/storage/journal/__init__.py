"""The journal of Raft: its port, two implementations under one suite, and what may be written."""
