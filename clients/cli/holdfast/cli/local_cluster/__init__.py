"""A whole cluster on one machine (`holdfast cluster start`): directories, processes, a lock."""
