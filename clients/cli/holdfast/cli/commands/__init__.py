"""The commands, a file each; a module is loaded when its command is asked for."""
