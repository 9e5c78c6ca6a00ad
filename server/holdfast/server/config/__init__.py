"""The configuration of a node: its file, its keys and the page that documents them."""
