"""Clients that freeze past their session and wake up, or die without a word."""

from __future__ import annotations

from holdfast.chaos.nemesis.fault_context import FaultContext, Kind


async def client_pause(context: FaultContext) -> None:
    """A worker is frozen, shorter or longer than its session; awake, it must know (S11)."""
    worker = context.random.choice(context.workers.running)
    seconds = context.random.uniform(0.3, 1.6) * context.session_s
    with context.fault("client-pause", f"client:{worker.task.number}", seconds=seconds):
        await context.workers.freeze(worker, seconds)


async def client_kill(context: FaultContext) -> None:
    """A worker dies with all its members; another one takes its slots."""
    worker = context.random.choice(context.workers.running)
    context.begin("client-kill", f"client:{worker.task.number}")
    await context.workers.kill(worker)


KINDS = (
    Kind("client-pause", "SIGSTOP of a process of members, up to 1.6 sessions", client_pause),
    Kind("client-kill", "kill -9 of a process of members; another takes over", client_kill),
)
