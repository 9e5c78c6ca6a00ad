"""The contract: messages and services of `holdfast.v1`, generated from the `.proto` files here.

Never edit a `*_pb2*` file; edit the `.proto` and run `./dev proto`.
"""
