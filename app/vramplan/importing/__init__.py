"""What people bring: a model's config.json or a PEFT adapter_config.json becomes settings, counts, and what was assumed.

Belongs here: reading other people's files. Not here: files and network (cli and page fetch), how memory is counted.
"""
