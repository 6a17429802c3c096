// Run one Python file inside Pyodide, in Node: node run.mjs JOB.json
// The job: pyodide (folder), stdlib (zip, optional), folders ({mount point: folder}), script, arguments.
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const job = JSON.parse(await readFile(process.argv[2], "utf8"));
const { loadPyodide, version } = await import(pathToFileURL(`${job.pyodide}/pyodide.mjs`));
const { info } = JSON.parse(await readFile(`${job.pyodide}/pyodide-lock.json`, "utf8"));

try {
  const pyodide = await loadPyodide({
    indexURL: job.pyodide,
    stdLibURL: job.stdlib,
    packageBaseUrl: job.pyodide,
    lockFileContents: { info: { version, ...info }, packages: {} },
    args: ["-X", "utf8", "-X", "no_debug_ranges"],
  });
  for (const [place, folder] of Object.entries(job.folders)) {
    pyodide.mountNodeFS(place, folder);
  }
  const globals = pyodide.toPy({ __name__: "__main__", ARGUMENTS: job.arguments });
  await pyodide.runPythonAsync(await readFile(job.script, "utf8"), { globals, filename: job.script });
  process.exit(0);
} catch (error) {
  console.error(String(error.message ?? error).slice(-2000));
  process.exit(1);
}
