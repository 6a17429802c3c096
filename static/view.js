// Says on <html> how the page is shown, before anything is painted, so that style.css can lay it out. By the address:
//   embed=1 → data-embed, and panels=a,b → data-panels="a b", or what this script's own data-panels says
//   theme=light or theme=dark → data-theme
//   anything at all → data-asked: the numbers of the opening run are not those that were asked for. They are shown all the same
//   where the script that starts Python does not come.
{
  const asked = Object.fromEntries([...new URLSearchParams(location.search)].map(([key, text]) => [key, text.trim()]));
  const page = document.documentElement.dataset;
  const panels = (asked.panels ?? "").split(",").map((name) => name.trim()).filter((name) => /^[a-z-]+$/.test(name));
  if (location.search.length > 1) page.asked = "";
  addEventListener("error", ({ target }) => { if (target.dataset?.manifest) delete page.asked; }, true);
  if (/^(light|dark)$/.test(asked.theme)) page.theme = asked.theme;
  if (asked.embed === "1") {
    page.embed = "";
    page.panels = panels.join(" ") || document.currentScript.dataset.panels;
  }
}
