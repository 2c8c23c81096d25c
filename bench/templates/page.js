// Draws every chart at the width there is, in the colours that the reader prefers.
const content = (id) => JSON.parse(document.getElementById(id).textContent);
const specs = content("specs");
const themes = content("themes");
const preferred = window.matchMedia("(prefers-color-scheme: dark)");
let chosen = null;

const theme = () => chosen ?? (preferred.matches ? "dark" : "light");

function fitted(spec, reserve, width) {
  // A stacked chart has no width of its own: its panels have.
  if (spec.vconcat) {
    const panelWidth = Math.max(120, width - reserve);
    return { ...spec, vconcat: spec.vconcat.map((panel) => ({ ...panel, width: panelWidth })) };
  }
  return { ...spec, width, autosize: { type: "fit-x", contains: "padding" } };
}

async function draw() {
  document.documentElement.dataset.theme = theme();
  for (const [name, { spec, reserve }] of Object.entries(specs)) {
    const place = document.getElementById(`chart-${name}`);
    const drawn = { ...fitted(spec, reserve, place.clientWidth), config: { ...themes[theme()] } };
    drawn.config.background = "transparent";
    await vegaEmbed(place, drawn, { actions: false, renderer: "svg" });
  }
  document.documentElement.dataset.drawn = theme();
}

function save() {
  const link = document.createElement("a");
  const text = document.getElementById("figures").textContent;
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = "figures.json";
  link.click();
  URL.revokeObjectURL(link.href);
}

document.getElementById("theme").addEventListener("click", () => {
  chosen = theme() === "dark" ? "light" : "dark";
  draw();
});
document.getElementById("save").addEventListener("click", save);
preferred.addEventListener("change", draw);

let width = window.innerWidth;
window.addEventListener("resize", () => {
  // A phone's address bar changes the height all the time, and no chart.
  if (window.innerWidth !== width) {
    width = window.innerWidth;
    draw();
  }
});
draw();
