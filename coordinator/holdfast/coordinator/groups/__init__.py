"""What the rules of every group type share: a decision's draft, identity, a group's end."""
