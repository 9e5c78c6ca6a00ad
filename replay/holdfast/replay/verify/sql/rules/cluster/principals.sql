-- From where on members keep a principal, and topics tell when they were created: one row, null if the level
-- for that, the second, was never raised.
--
-- Reads own: the cluster's own records.
select min(case when type = 'LevelRaised' and number >= 2 then at end) as kept_from
from {own}
