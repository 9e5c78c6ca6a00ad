-- The rows of the present phase of each group, as of a group that was never of another type.
-- rows: the records of phases and what these began with (conversion/rows.sql).
select * except (phase, present) from {rows} where present
