-- The records of groups that changed their type, each with the phase that it is of, and whether that is
-- the present one. A conversion ends one phase and belongs to the next, which it begins: the number of a
-- phase is the number of conversions up to it.
-- living: the records of these groups.
with numbered as (
  select grp, at, type, carried, token, member_id, old_member_id, instance_id, members, removed, group_type,
    generation, grants, joined, classic, command, topics, regex, epoch, targets, granted, asked_back, freed,
    waiting, assignor, late, installed_by, converted,
    cast(count(case when type = 'GroupConverted' then 1 end) over (partition by grp order by at) as int)
      as phase,
    cast(count(case when type = 'GroupConverted' then 1 end) over (partition by grp) as int) as last_phase
  from {living}
)
select *, phase = last_phase as present from numbered
