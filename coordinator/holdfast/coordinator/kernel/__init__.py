"""`decide`, `evolve` and `apply`: the rooms put together; the only room that imports all others."""
