"""What commands do in directories of stopped nodes: they read and write disks, and ask no node."""
