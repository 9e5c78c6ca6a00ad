-- The rows of all phases, each phase as a group of its own: its `grp` is the pair of that and the phase.
-- rows: the records of phases and what these began with (conversion/rows.sql).
select struct(grp, phase) as grp, * except (grp, phase, present) from {rows}
