"""A run as a file of a tool: a TRL script, an Axolotl YAML; and as a summary in Markdown. The other way round: training_files.

    Estimate -> a run as the training step counts it (draft) -> keys of the tool, what they mean, what they cannot say (axolotl, trl)
             -> text (yaml_lines, script), with what it is, the link and the estimate on top (heading) -> Export (export)

Keys and words come from the tables that read them, so that a file that is brought back gives the settings it was made of. What no
key of the tool says is named on top of the file, and listed in Export.lost; Export.means is what the file gives when it is read.
A tool is a module with one function `keys(draft)`, named in `export.TOOLS_OUT`.
"""
