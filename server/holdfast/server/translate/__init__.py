"""Between the contract (`holdfast.v1`) and the core: total functions without state or IO.

`requests` makes commands of messages, `responses` messages of replies, `refusals` is the one table
of error codes and sentences, `admin` and `views` do the same for what operators ask. Nothing here
decides anything.
"""
