"use strict";
// Draws the figures of a page live, in the colours of its mode.
(() => {
  const look = JSON.parse(document.getElementById("figure-look").textContent);
  const dark = () => document.body.dataset.mdColorScheme === "slate";

  function recolour(value) {
    if (typeof value === "string") return look.colours[value] ?? value;
    if (Array.isArray(value)) return value.map(recolour);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, recolour(v)]));
    }
    return value;
  }

  function draw(element) {
    const spec = JSON.parse(element.querySelector("script").textContent);
    const plain = { data: spec.data, layout: { ...spec.layout, template: look.template } };
    const { data, layout } = dark() ? recolour(plain) : plain;
    const target = element.querySelector(".drawn");
    layout.height ??= 420;
    delete layout.width;
    element.querySelector("img")?.remove();
    Plotly.react(target, data, layout, { responsive: true, displayModeBar: false, scrollZoom: false });
  }

  const all = [...document.querySelectorAll(".live")];
  const redraw = () => all.forEach(draw);
  redraw();
  new MutationObserver(redraw).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
})();
