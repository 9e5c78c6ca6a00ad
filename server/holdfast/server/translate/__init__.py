"""Translation between the contract (`holdfast.v1`) and the core: total, without state or IO.

`requests` makes commands from messages, `responses` messages from replies. `refusals` is the one
table of error codes and sentences. `admin` and `views` are for calls of operators. Nothing here
decides anything.
"""
