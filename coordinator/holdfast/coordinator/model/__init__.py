"""Values of the core: ids, events, state, commands, replies. No rules; knows only structures."""
