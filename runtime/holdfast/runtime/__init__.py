"""A coordinator on a replicated log, in one event loop: Kafka calls this CoordinatorRuntime.

Turns commands into entries and entries into answers, and keeps time, history and what runs in the
background. Knows no gRPC and no messages of the contract: `holdfast.server` brings those.
"""
