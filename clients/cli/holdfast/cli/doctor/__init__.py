"""What `holdfast doctor` checks: facts are gathered in some files, and judged in others."""
