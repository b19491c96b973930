"""The dialects, one file each, pure: announcements to devices, messages to values, acts and questions to messages."""
