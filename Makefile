# Every target is one call of ./dev, which needs nothing but python3.
.PHONY: setup demo test test-fast test-long bench bench-full measure lint types contracts check lock clean chaos fuzz servers

setup demo test test-fast test-long bench bench-full measure lint types contracts check lock clean chaos fuzz servers:
	@python3 ./dev $@
