"""After `os.fork()`: the child has a copy of the member, and is none. Processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

import pytest

from unit.client.both_shells import cluster

WITHIN_S = 40
CHILD = """
    def refused(what, act):
        try:
            print(what, "gives", act(), flush=True)
        except BaseException as error:
            told = "forked from" in str(error)
            print(what, type(error).__name__, "says so" if told else error, flush=True)

    def child(member, partition, call):
        print("owned", partition.owned, "revoking", partition.revoking, flush=True)
        refused("check", partition.check)
        print("assignment", member.assignment, flush=True)
        refused("health", member.health)
        refused("begin_restart", member.begin_restart)
        refused("commit", lambda: call(member.commit, {("t", 0): 1}))
        refused("committed", lambda: call(member.committed))
        refused("next_owned", lambda: call(member.next_owned))
        refused("wait_stopped", lambda: call(member.wait_stopped))
        refused("leave", lambda: call(member.leave))
        refused("restart", lambda: call(member.restart))
        refused("run", lambda: call(member.run, print))
        refused("start", member.start)
"""
AIO = (
    CHILD
    + """
    import asyncio, os, sys
    from holdfast.client import Admin, Member

    def call(method, *args):
        work = method(*args)
        try:
            work.send(None)  # it must be refused before it waits for anything
        finally:
            work.close()

    async def main():
        admin = Admin(sys.argv[1])
        async with Member(sys.argv[1], group="g", topics=["t"], heartbeat_interval_ms=20) as member:
            partition = await member.next_owned()
            await admin.list_topics()
            pid = os.fork()
            if not pid:
                try:
                    child(member, partition, call)
                    refused("admin", lambda: call(admin.list_topics))
                    refused("close", lambda: admin.close().send(None))
                    member.__aexit__(None, None, None).send(None)
                except StopIteration:
                    print("the block is left in silence", flush=True)
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
            partition.check()
            await member.commit({("t", 0): 1})
        await admin.close()
        print("the parent is well", flush=True)

    asyncio.run(main())
"""
)
SYNC = (
    CHILD
    + """
    import os, sys
    from holdfast.client.sync import Admin, Member

    def call(method, *args):
        return method(*args)

    admin = Admin(sys.argv[1])
    with Member(sys.argv[1], group="g", topics=["t"], heartbeat_interval_ms=20) as member:
        partition = member.next_owned()
        admin.list_topics()
        pid = os.fork()
        if not pid:
            try:
                child(member, partition, call)
                refused("admin", admin.list_topics)
                admin.close()
                print("close StopIteration ", flush=True)
                member.__exit__(None, None, None)
                print("the block is left in silence", flush=True)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        partition.check()
        member.commit({("t", 0): 1})
    admin.close()
    print("the parent is well", flush=True)
"""
)
MULTIPROCESSING = """
    import multiprocessing, sys, time
    from holdfast.client import sync

    processes = multiprocessing.get_context("fork")

    def work(runs):
        runs.set()  # before this Python itself may drop a signal
        time.sleep(600)

    with sync.Member(sys.argv[1], group="g", topics=["t"], heartbeat_interval_ms=20) as member:
        sync.restart_on_signals(member)
        partition = member.next_owned()
        runs = processes.Event()
        child = processes.Process(target=work, args=[runs], daemon=True)
        child.start()
        runs.wait(20)
        child.terminate()  # the parent's handler of signals is copied, too
        child.join(20)
        print(child.exitcode, partition.owned, flush=True)
"""
EXPECTED = [
    "owned False revoking True",
    "check OwnershipLost says so",
    "assignment ()",
    *(
        f"{call} RuntimeError says so"
        for call in (
            *("health", "begin_restart", "commit", "committed", "next_owned", "wait_stopped"),
            *("leave", "restart", "run", "start", "admin"),
        )
    ),
    "close StopIteration ",  # nothing is closed, for it is the parent's, and nothing waited for
    "the block is left in silence",
    "the parent is well",
]


def output_of(program: str) -> list[str]:
    with cluster() as (group, node):
        ended = subprocess.run(
            [sys.executable, "-c", dedent(program), node.address],
            # gRPC's own handlers of forks abort a child now and then, in all that use it.
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(sys.path), "GRPC_ENABLE_FORK_SUPPORT": "0"},
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        assert len(group.requests["LeaveGroup"]) == 1, "the parent's own goodbye"
    return ended.stdout.splitlines()


@pytest.mark.parametrize("program", [AIO, SYNC], ids=["aio", "sync"])
def test_the_child_of_a_fork_owns_nothing_and_each_use_is_refused(program: str) -> None:
    """A copied member that believed to own would be a second owner of the same grant (S11)."""
    assert output_of(program) == EXPECTED


def test_a_signal_ends_the_child_of_a_fork_and_not_the_parent_s_member() -> None:
    assert output_of(MULTIPROCESSING)[-1] == "-15 True"
