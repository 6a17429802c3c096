"""Training files: what a tool was told to do, read as settings, with a row for every key.

    text -> marked values (yaml_text, json_text, commands) -> which tool (recognise) -> Reading (reading) -> TrainingFile (training)

A tool is a table in `data/tool_<name>.toml` (dashes become underscores) and, for what depends on several keys, a module here with one function
`combine(reading)`, named in `training.COMBINE`. To add a tool:

1.  Write `data/tool_<name>.toml`. `[tool]` says its label, the releases that were read, its `stack`, the key of the base model,
    the keys it is known by (`signs`: every key of one of the lists) and the commands that train with it. `extends` takes over the
    tables of another tool (`transformers` for whatever hands its keys to TrainingArguments). `part` is for files that give some settings
    of a run and leave the others as they are, as those of DeepSpeed do; they have no stack and no model.
        [[decides]]    one key that gives one setting: `values` for choices ("true" and "false" are the words of a flag), `default` for
                       what the tool takes where the key is missing. Numbers need no values.
        [[combined]]   keys that the module reads; `default` is theirs, for the module to ask for (reading.default).
        [[no_effect]]  keys that change nothing in memory, with one reason for all of them.
        [[inexact]]    keys that change memory in a way no setting says, unless their value is one of `unless`: why, and whether the
                       estimate is then an upper bound ("upper": the run takes at most that), a "lower" one, or neither ("none").
        [[signs_of_release]]  keys that only other releases have, and the stack that is then taken.
    Every entry has the place in the tool's source where that stands, and a date. A key in no table is listed as unknown.
2.  Write `combine(reading)` where keys depend on each other: reading.flag/whole/number/text/words(key) give a value of the file
    or None, and mark the key as read; reading.take(setting, text, *keys) sets a setting and tells where it was read;
    reading.assume(setting, text, why) tells what the tool does by itself; reading.cannot(key, why, bound) and
    reading.refuse(key, why) tell what no setting says, of a part or of the whole run. What the module leaves, the table decides.
    `methods.py` and `parallel.py` have what several tools share: adapters and quantisation, Liger, DeepSpeed and FSDP.
3.  Add published files of it to `tests/training_files/<name>/`, and what they come to in `tests/test_training_files.py`.

An export goes the other way through the same tables: `tools.tool(name).decides` has, for each setting, the key and the words of its
values (`Decides.word(text)` gives the key's value for a setting's text), `optimizer_name` the name of an optimizer.
"""
