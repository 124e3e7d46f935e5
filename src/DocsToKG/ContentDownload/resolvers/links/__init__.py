"""Links that name a copy: which kind they are, what is known of the copy, and which are one."""
