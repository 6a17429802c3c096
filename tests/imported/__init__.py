"""Models as their config.json describes them, counted with the classes of transformers: see record.py."""
