"""The contract: messages and services of package `holdfast.v1`, generated from the `.proto` files beside this one.

Never edit a `*_pb2*` file; edit the `.proto` and run `./dev proto`.
"""
