# `make X` is `./dev X`, for fingers that are used to make. `make` alone is `./dev` alone.
.PHONY: check $(MAKECMDGOALS)
.DEFAULT_GOAL := check

check:
	@./dev

$(filter-out check,$(MAKECMDGOALS)):
	@./dev $@
