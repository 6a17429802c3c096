"""Configuration of the Sphinx example."""

project = "Fine-tuning guide"
html_js_files = [("https://example.org/vram/embed.js", {"async": "async"})]
