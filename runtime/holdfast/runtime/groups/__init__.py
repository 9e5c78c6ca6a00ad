"""The actors of groups: one decides for one group, and has its batches committed."""
