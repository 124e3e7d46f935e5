"""The command lines: `content` for people, `contentdownload` for operators. Same code, same exit codes."""
