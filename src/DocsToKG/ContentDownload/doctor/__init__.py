"""Whether everything that the settings name can be used: servers, folders, secrets, this machine."""
