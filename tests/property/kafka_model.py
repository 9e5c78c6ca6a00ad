"""A second coordinator of the classic protocol, written from the rules alone, for comparison.

Slow, mutable and plain: members in a dict, one timer table, answers in the neutral JSON of the
transcripts. It shares no code with `holdfast.coordinator`, so that both are not wrong alike.
`Model(ours=False)` is Kafka, and must answer the recorded transcripts as Kafka did; `ours=True`
adds the decisions by which we differ. Ids that it makes up are symbols of a transcript (`$a.1`).
Offsets, topics and descriptions are in `kafka_reads`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from property.kafka_parts import COMPLETING, EMPTY, PREPARING, STABLE, Group, Member, Table

Json = Any
NEW_MEMBER_MS = 300_000
"""A new member's first join may be parked so long (K-A21)."""
SESSION_MS = range(200, 1_800_001)
"""The bounds of the transcripts' base profile (K-I5)."""


class Model(Table):
    """The rules of joining, rebalancing, syncing and leaving."""

    # --- calls ---

    def call(self, of: int, client: str, api: str, request: Json) -> None:
        self.sent[of] = (client, api)
        {
            "JoinGroup": self.join,
            "SyncGroup": self.sync,
            "Heartbeat": self.heartbeat,
            "LeaveGroup": self.leave,
        }[api](of, request)

    # --- join ---

    def join(self, of: int, request: Json) -> None:
        name, asked = request["group_id"], request["member_id"]
        if not name:
            return self.refuse_join(of, "INVALID_GROUP_ID", asked)
        if not 200 <= request["session_timeout_ms"] <= 1_800_000:
            return self.refuse_join(of, "INVALID_SESSION_TIMEOUT", asked)
        group = self.groups.get(name)
        if group is None and asked:
            return self.refuse_join(of, "UNKNOWN_MEMBER_ID", asked)
        if group is not None and not self._room(group, request):
            return self._too_many(of, name, group, request)
        if not self._consistent(group, request):
            return self.refuse_join(of, "INCONSISTENT_GROUP_PROTOCOL", asked)
        group = self.groups.setdefault(name, Group())
        if asked in group.pending:
            return self._join_pending(of, name, group, request)
        if asked:
            return self._join_known(of, name, group, request)
        return self._join_new(of, name, group, request)

    def _room(self, group: Group, request: Json) -> bool:
        """K-I9 to K-I12."""
        asked, instance = request["member_id"], request.get("group_instance_id")
        if self.ours and not asked and instance is not None:
            asked = group.instances.get(instance, "")
        member = group.members.get(asked)
        if group.state == PREPARING:
            parked = member is not None and member.join is not None
            return parked or len(group.joining) < self.max_size
        return group.state == EMPTY or member is not None or len(group.members) < self.max_size

    def _too_many(self, of: int, name: str, group: Group, request: Json) -> None:
        asked, instance = request["member_id"], request.get("group_instance_id")
        if asked in group.pending:
            group.pending.discard(asked)
            self.cancel(name, "pending", asked)
        elif self.stranger(group, asked, instance) is None:
            self.drop(name, group, asked)
        self.refuse_join(of, "GROUP_MAX_SIZE_REACHED")
        if self.ours:
            self.settle_round(name, group)

    @staticmethod
    def _consistent(group: Group | None, request: Json) -> bool:
        """K-I1 to K-I4."""
        if group is None or group.state == EMPTY:
            return bool(request["protocol_type"] and request["protocols"])
        if request["protocol_type"] != group.type:
            return False
        names = {p["name"] for p in request["protocols"]}
        return any(
            all(n in {p["name"] for p in m.protocols} for m in group.members.values())
            for n in names
        )

    def _fresh(self, of: int) -> str:
        client = self.sent[of][0]
        self._ids[client] += 1
        return f"${client}.{self._ids[client]}"

    def _join_new(self, of: int, name: str, group: Group, request: Json) -> None:
        instance, fresh = request.get("group_instance_id"), self._fresh(of)
        if instance is None:  # K-A1, K-A3
            group.pending.add(fresh)
            session = request["session_timeout_ms"]
            self.arm(name, "pending", fresh, session, lambda: self._pending_over(name, fresh))
            return self.refuse_join(of, "MEMBER_ID_REQUIRED", fresh)
        if instance in group.instances:
            return self._replace(of, name, group, request, fresh)
        return self._add(of, name, group, request, fresh)

    def _pending_over(self, name: str, member_id: str) -> None:
        group = self.groups[name]
        group.pending.discard(member_id)
        self.settle_round(name, group)

    def _join_pending(self, of: int, name: str, group: Group, request: Json) -> None:
        if request.get("group_instance_id") is not None:
            return self.refuse_join(of, "UNKNOWN_SERVER_ERROR")  # K-A10
        asked = request["member_id"]
        group.pending.discard(asked)
        self.cancel(name, "pending", asked)
        return self._add(of, name, group, request, asked)

    def _add(self, of: int, name: str, group: Group, request: Json, member_id: str) -> None:
        """K-A5, K-B1, K-B2, K-D2: a new member, and a rebalance."""
        member = Member(
            *(member_id, request.get("group_instance_id"), self.sent[of][0]),
            *(request["session_timeout_ms"], request["rebalance_timeout_ms"]),
            protocols=request["protocols"],
            join=of,
        )
        if group.state == PREPARING and group.initial:
            group.added = True
        if not group.members:
            group.type = request["protocol_type"]
        group.members[member_id] = member
        group.leader = group.leader or member_id
        if member.instance is not None:
            group.instances[member.instance] = member_id
        self.arm(name, "session", member_id, NEW_MEMBER_MS, lambda: self._silent(name, member_id))
        self.rebalance(name, group)

    def _join_known(self, of: int, name: str, group: Group, request: Json) -> None:
        """K-A12 to K-A20, K-B15 to K-B18."""
        asked = request["member_id"]
        error = self.stranger(group, asked, request.get("group_instance_id"))
        if error:
            return self.refuse_join(of, error, asked)
        member, leads = group.members[asked], group.leader == asked
        same = member.protocols == request["protocols"]
        if same and (group.state == COMPLETING or (group.state == STABLE and not leads)):
            if self.ours:  # K-B17 bettered, and the session is renewed
                self._timeouts(member, request)
                self.renew(name, member)
            return self.accept_join(of, group, member, listed=leads and group.state == COMPLETING)
        self._update(of, name, member, request)
        return self.rebalance(name, group)

    @staticmethod
    def _timeouts(member: Member, request: Json) -> None:
        member.session = request["session_timeout_ms"]
        member.rebalance = request["rebalance_timeout_ms"]

    def _update(self, of: int, name: str, member: Member, request: Json) -> None:
        self._timeouts(member, request)
        member.protocols = request["protocols"]
        member.join = of  # an earlier call is never answered
        if self.ours and not member.new:
            self.cancel(name, "session", member.member_id)

    def _replace(self, of: int, name: str, group: Group, request: Json, fresh: str) -> None:
        """K-B3 to K-B13, K-B19, K-B20: another process has the instance now."""
        old_id = group.instances[request["group_instance_id"]]
        old = group.members[old_id]
        self.refuse_join(old.join, "FENCED_INSTANCE_ID", old_id)
        self.answer_sync(old.sync, "FENCED_INSTANCE_ID", group)
        self.cancel(name, "session", old_id)
        member = Member(
            *(fresh, old.instance, self.sent[of][0] if self.ours else old.client),
            *(old.session, old.rebalance),
            protocols=old.protocols,
            assignment=old.assignment,
            new=False,
        )
        members = [member if each is old else each for each in group.members.values()]
        group.members = {each.member_id: each for each in members}
        group.instances[request["group_instance_id"]] = fresh
        leads = group.leader == old_id
        group.leader = fresh if leads else group.leader
        if self.ours and old_id in group.owed:
            group.owed.discard(old_id)
            if not group.owed:
                self.cancel(name, "owed")
        if not self.ours:  # K-B9: the first session is the old one's
            self.renew(name, member)
        self._update(of, name, member, request)
        if self.ours:
            self.renew(name, member)
        if group.state == STABLE and not self._moved(group, old, member, leads=leads):
            member.join = None
            self.accept_join(of, group, member, listed=leads, skip=leads)
        else:
            self.rebalance(name, group)

    def _moved(self, group: Group, old: Member, new: Member, *, leads: bool) -> bool:
        """K-B8; K-B6 as we have it."""
        if self.vote(group) != group.protocol:
            return True
        topics = old.topics(group.protocol), new.topics(group.protocol)
        return self.ours and not leads and topics[0] != topics[1]

    # --- rounds ---

    def rebalance(self, name: str, group: Group) -> None:
        """Open a join phase, or look whether the open one can close (K-D4, K-D10, K-D12)."""
        if group.state == PREPARING:
            return self.settle_round(name, group)
        if group.state == COMPLETING:
            for member in group.members.values():
                member.assignment = ""
                if member.sync is not None:
                    self.answer_sync(member.sync, "REBALANCE_IN_PROGRESS", group)
                    member.sync = None
                    self.renew(name, member)
        self.cancel(name, "owed")
        group.owed.clear()
        group.initial = group.state == EMPTY
        group.state, group.timeout = PREPARING, group.longest
        if group.initial:
            group.added = False
            left = max(group.longest - self.delay, 0)
            return self._hold(name, group, self.delay, left)
        if self._all_there(group):
            return self.close(name, group)
        return self.arm(name, "round", "", group.timeout, lambda: self.close(name, group))

    def _hold(self, name: str, group: Group, delay: int, left: int) -> None:
        """K-D1, K-D2: wait for company, and again when somebody came."""

        def over() -> None:
            if not group.added or not left:
                return self.close(name, group)
            group.added = False
            return self._hold(name, group, min(self.delay, left), max(left - delay, 0))

        self.arm(name, "round", "", delay, over)

    @staticmethod
    def _all_there(group: Group) -> bool:
        return len(group.joining) == len(group.members) and not group.pending

    def settle_round(self, name: str, group: Group) -> None:
        if group.state == PREPARING and not group.initial and self._all_there(group):
            self.close(name, group)

    def close(self, name: str, group: Group) -> None:
        """The join phase ends with whoever is there (K-D5 to K-D9, K-A25)."""
        self.cancel(name, "round")
        for absent in [m for m in group.members.values() if m.join is None and m.instance is None]:
            self.drop(name, group, absent.member_id)
        joining = group.joining
        if group.members and not joining:  # K-D8
            again = max(group.timeout, 1_000) if self.ours else group.longest
            return self.arm(name, "round", "", again, lambda: self.close(name, group))
        group.generation += 1
        if not group.members:
            group.state, group.protocol, group.leader = EMPTY, None, None
            group.subscribed = set()
            return None
        leader = group.members.get(group.leader or "")
        if leader is None or leader.join is None:
            group.leader = joining[0].member_id
        group.state, group.protocol = COMPLETING, self.vote(group)
        group.subscribed = self.subscribed(group)
        return self._tell(name, group)

    def _tell(self, name: str, group: Group) -> None:
        group.answered = {m.member_id for m in group.joining}
        for member in group.members.values():
            if member.join is not None or not self.ours:  # K-D15, K-D16
                group.owed.add(member.member_id)
                of, member.join, member.new = member.join, None, False
                leads = group.leader == member.member_id
                self.accept_join(of, group, member, listed=leads)
                self.renew(name, member)
        self.arm(name, "owed", "", group.longest, lambda: self.overdue(name, group))

    def subscribed(self, group: Group) -> set[str] | None:
        topics = [m.topics(group.protocol) for m in group.members.values()]
        if group.type != "consumer" or None in topics:
            return None
        return {topic for each in topics if each is not None for topic in each}

    @staticmethod
    def vote(group: Group) -> str:
        """K-D11, a tie by name."""
        lists: list[list[str]] = [[p["name"] for p in m.protocols] for m in group.members.values()]
        common = set.intersection(*map(set, lists))
        votes = Counter(next(n for n in names if n in common) for names in lists)
        return min(votes, key=lambda each: (-votes[each], each))

    # --- sync, heartbeat, sessions ---

    def sync(self, of: int, request: Json) -> None:
        name, asked = request["group_id"], request["member_id"]
        group = self.groups.get(name)
        error = self._sync_error(group, request)
        if error or group is None:
            return self.answer_sync(of, error or "", Group())
        member = group.members[asked]
        group.owed.discard(asked)
        if not group.owed:
            self.cancel(name, "owed")
        if group.state == STABLE:
            if self.ours:
                self.renew(name, member)
            return self.answer_sync(of, "NONE", group, member.assignment)
        member.sync = of
        if self.ours:
            self.cancel(name, "session", asked)
        if group.leader == asked:
            self._assign(name, group, request.get("assignments", []))
        return None

    def _sync_error(self, group: Group | None, request: Json) -> str | None:
        said = request.get("protocol_type"), request.get("protocol_name")
        if None in said:
            return "INCONSISTENT_GROUP_PROTOCOL"
        if not request["group_id"]:
            return "INVALID_GROUP_ID"
        error = self.stranger(group, request["member_id"], request.get("group_instance_id"))
        if error or group is None:
            return error
        if request["generation_id"] != group.generation:
            return "ILLEGAL_GENERATION"
        if any(
            g is not None and s != g
            for s, g in zip(said, (group.type, group.protocol), strict=True)
        ):
            return "INCONSISTENT_GROUP_PROTOCOL"
        return "REBALANCE_IN_PROGRESS" if group.state == PREPARING else None

    def _assign(self, name: str, group: Group, assignments: list[Json]) -> None:
        """K-E5."""
        given = {each["member_id"]: each["assignment"] for each in assignments}
        group.state = STABLE
        for member in group.members.values():
            member.assignment = given.get(member.member_id, "")
            if member.sync is not None:
                self.answer_sync(member.sync, "NONE", group, member.assignment)
                member.sync = None
                self.renew(name, member)

    def overdue(self, name: str, group: Group) -> None:
        """K-E10 to K-E12."""
        for member_id in [each for each in group.owed if each in group.members]:
            self.drop(name, group, member_id)
        group.owed.clear()
        self.rebalance(name, group)

    def heartbeat(self, of: int, request: Json) -> None:
        name, asked = request["group_id"], request["member_id"]
        group = self.groups.get(name)
        error = self.stranger(group, asked, request.get("group_instance_id"))
        if not name:
            error = "INVALID_GROUP_ID"
        elif group is not None and error is None:
            if request["generation_id"] != group.generation:
                error = "ILLEGAL_GENERATION"
            else:
                self.heard(name, group.members[asked])
                error = "REBALANCE_IN_PROGRESS" if group.state == PREPARING else None
        self.answer(of, {"error_code": error or "NONE"})

    def heard(self, name: str, member: Member) -> None:
        """Renew a session that runs; a parked member's does not, with us (K-A23)."""
        if not self.ours or (member.join is None and member.sync is None):
            self.renew(name, member)

    def renew(self, name: str, member: Member) -> None:
        member_id = member.member_id
        self.arm(name, "session", member_id, member.session, lambda: self._silent(name, member_id))

    def _silent(self, name: str, member_id: str) -> None:
        """K-F9, K-F10, K-A21 to K-A23."""
        group = self.groups[name]
        member = group.members[member_id]
        if not member.new and (member.join is not None or member.sync is not None):
            return
        self.refuse_join(member.join, "UNKNOWN_MEMBER_ID")
        self.drop(name, group, member_id)
        self.rebalance(name, group)

    # --- leave ---

    def leave(self, of: int, request: Json) -> None:
        name = request["group_id"]
        if not name:
            return self.answer(of, {"error_code": "INVALID_GROUP_ID", "members": []})
        group = self.groups.get(name)
        results = [
            {
                "member_id": each.get("member_id", ""),
                "group_instance_id": each.get("group_instance_id"),
                "error_code": self._leave_one(name, group, each),
            }
            for each in request["members"]
        ]
        left = group is not None and any(each["error_code"] == "NONE" for each in results)
        self.answer(of, {"error_code": "NONE", "members": results})
        if group is not None and left and group.state != EMPTY:
            self.rebalance(name, group)
        return None

    def _leave_one(self, name: str, group: Group | None, entry: Json) -> str:
        """K-G4 to K-G19."""
        if group is None:
            return "UNKNOWN_MEMBER_ID"
        asked, instance = entry.get("member_id", ""), entry.get("group_instance_id")
        if not asked:
            asked = group.instances.get(instance or "", "")
        elif asked in group.pending:
            group.pending.discard(asked)
            self.cancel(name, "pending", asked)
            return "NONE"
        error = self.stranger(group, asked, instance)
        if error:
            return error
        member = group.members[asked]
        self.refuse_join(member.join, "UNKNOWN_MEMBER_ID")
        if self.ours:
            self.answer_sync(member.sync, "UNKNOWN_MEMBER_ID", group)
        self.drop(name, group, asked)
        return "NONE"

    def drop(self, name: str, group: Group, member_id: str) -> None:
        member = group.members.pop(member_id)
        if member.instance is not None:
            del group.instances[member.instance]
        if group.leader == member_id:
            group.leader = next(iter(group.members), None)
        group.owed.discard(member_id)
        self.cancel(name, "session", member_id)
