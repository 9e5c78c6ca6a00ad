"""Clients that freeze past their session and wake up, or die without a word."""

from __future__ import annotations

from holdfast.chaos.nemesis.battle import Battle, Kind


async def client_pause(battle: Battle) -> None:
    """A worker is frozen, shorter or longer than its session; awake, it must know (S11)."""
    worker = battle.random.choice(battle.crew.running)
    seconds = battle.random.uniform(0.3, 1.6) * battle.session_s
    with battle.fault("client-pause", f"client:{worker.task.number}", seconds=seconds):
        await battle.crew.freeze(worker, seconds)


async def client_kill(battle: Battle) -> None:
    """A worker dies with all its members; another one takes its slots."""
    worker = battle.random.choice(battle.crew.running)
    battle.begin("client-kill", f"client:{worker.task.number}")
    await battle.crew.kill(worker)


KINDS = (
    Kind("client-pause", "SIGSTOP of a process of members, up to 1.6 sessions", client_pause),
    Kind("client-kill", "kill -9 of a process of members; another takes over", client_kill),
)
