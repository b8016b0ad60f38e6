"use strict";
(() => {
  const DATA = JSON.parse(document.getElementById("page-data").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)").matches;
  let printing = false;

  // ------------------------------------------------------------------------------------ theme
  const stored = () => { try { return localStorage.getItem("mvlstm-theme"); } catch { return null; } };
  const isDark = () => !printing &&
    (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

  function recolour(value) {
    if (typeof value === "string") return DATA.colours[value] ?? value;
    if (Array.isArray(value)) return value.map(recolour);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, recolour(v)]));
    }
    return value;
  }

  function unpack(trace, traces) { // what encode.packed wrote once
    if (trace.x?.of !== undefined) trace.x = traces[trace.x.of].x;
    const { rows, times } = trace.customdata ?? {};
    if (rows) trace.customdata = rows.map((name) => Array(times).fill(name));
  }

  function dress(spec) {
    const plain = structuredClone({ data: spec.data, layout: { ...spec.layout, template: DATA.template } });
    for (const trace of plain.data) unpack(trace, plain.data);
    const dressed = isDark() ? recolour(plain) : plain;
    dressed.layout.dragmode = coarse ? false : "zoom";
    if (coarse) {
      for (const key of Object.keys(dressed.layout)) {
        if (/^[xy]axis\d*$/.test(key)) dressed.layout[key].fixedrange = true;
      }
    }
    return dressed;
  }

  // ---------------------------------------------------------------------------------- figures
  const config = (name) => ({
    responsive: true, displaylogo: false, scrollZoom: false, displayModeBar: coarse ? false : "hover",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    toImageButtonOptions: { filename: name, format: "svg" },
  });
  const drawn = new Map(); // element -> () => redraw
  const waiting = new Map(); // element -> () => draw for the first time
  const MANY = Object.keys(DATA.figures).length > 30; // then each is drawn when it comes into view
  const inView = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (entry.isIntersecting) waiting.get(entry.target)();
  }), { rootMargin: "400px" });

  // Paper is laid out after the event that announces it, so its widths (A4, px) are given here.
  function printWidth(element) {
    if (element.closest(".pair")) return 320;
    return element.closest(".block").classList.contains("wide") ? 660 : 310;
  }

  function draw(element, spec, name, extra = {}) {
    const { data, layout } = dress(spec);
    if (printing) layout.width = printWidth(element);
    for (const axis of ["xaxis", "yaxis"]) {
      if (extra[axis]) layout[axis] = { ...layout[axis], ...extra[axis] };
    }
    return Plotly.react(element, data, layout, config(name));
  }

  function setUpFigure(element) {
    const key = element.dataset.figure, figure = DATA.figures[key];
    let view = figure.views.length ? 0 : null;
    let choice = 0; // of another series or lead time
    const redraw = () => {
      const width = printing ? printWidth(element) : element.clientWidth;
      const narrow = figure.narrow && width < 560;
      const other = figure.choices[choice]?.wide ? figure.choices[choice] : null;
      const views = other?.views.length ? other.views : figure.views;
      const chosen = view === null ? null : views[Math.min(view, views.length - 1)];
      const extra = chosen ? {
        xaxis: { range: chosen.x, autorange: false }, yaxis: { range: chosen.y, autorange: false },
      } : {};
      element.dataset.variant = narrow ? "narrow" : "wide";
      return draw(element, other ? other.wide : narrow ? figure.narrow : figure.wide, key, extra);
    };
    const show = () => {
      if (drawn.has(element)) return;
      drawn.set(element, redraw);
      redraw();
      if (key === "forecast" && DATA.explorer) {
        element.on("plotly_click", ({ points: [{ x, data }] }) => {
          if (choice === 0) chooseNearest(x, data.name); // others are not taken apart
        });
      }
    };
    waiting.set(element, show);
    if (MANY) inView.observe(element);
    else show();
    const select = element.closest("figure").querySelector("[data-choice]");
    select?.addEventListener("change", () => { choice = Number(select.value); redraw(); });
    const buttons = all("[data-view]", element.closest("figure"));
    buttons.forEach((button) => button.addEventListener("click", () => {
      view = Number(button.dataset.view);
      buttons.forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      redraw();
    }));
  }

  function redrawAll() { for (const redraw of drawn.values()) redraw(); }

  addEventListener("resize", () => {
    for (const [element, redraw] of drawn) {
      const figure = DATA.figures[element.dataset.figure];
      const variant = element.clientWidth < 560 ? "narrow" : "wide";
      if (figure && figure.narrow && element.dataset.variant !== variant) redraw();
    }
  });

  // --------------------------------------------------------------------- one forecast taken apart
  const points = DATA.explorer ? DATA.explorer.points : [];
  const first = points.findIndex((p) => p.next); // what the page begins with; else the last
  let current = first < 0 ? points.length - 1 : first;
  const short = (x, digits = 4) => x === null ? "unknown" :
    Number(x).toLocaleString("en", { maximumSignificantDigits: digits }).replace("-", "\u2212");
  const signed = (x) => (x >= 0 ? "+" : "\u2212") + short(Math.abs(x));
  const moment = (value) => {
    const text = String(value); // Plotly shortens midnight to the date alone
    if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text);
    return Date.parse(`${text.replace(" ", "T")}${text.length <= 10 ? "T00:00" : ""}Z`);
  };

  function chooseNearest(x, name) {
    // What is several steps ahead and what is one step ahead may be of the same time.
    const other = (p) => (p.next || p.last) === (name === "next" || name === "last") ? 0 : 0.5;
    const distance = points.map((p) => Math.abs(moment(p.time) - moment(x)) || other(p));
    const best = distance.indexOf(Math.min(...distance));
    choose(best, moment(points[best].time) !== moment(x) ? String(x) : null);
  }

  function choose(index, asked = null) {
    current = Math.max(0, Math.min(points.length - 1, index));
    const p = points[current];
    byId("explorer-time").value = String(current);
    byId("explorer-back").disabled = current === 0;
    byId("explorer-on").disabled = current === points.length - 1;
    const elsewhere = asked !== null ? `Nearest explained time to ${asked}: ${p.time}. ` : "";
    const happened = p.next ? "It is still to come." :
      p.actual === null ? "" : `What happened: ${p.shown.actual}.`;
    byId("explorer-text").textContent =
      `${elsewhere}${p.text} Its 90 % interval runs from ${p.shown.low} to ${p.shown.high}. ${happened}`;
    byId("explorer").dataset.time = p.time;
    fillSums(p);
    drawPoint();
  }

  function drawPoint() {
    const p = points[current];
    const waterfall = byId("explorer-waterfall"), heat = byId("explorer-heat");
    waterfall.setAttribute("aria-label", `Contributions at ${p.time}. ${p.text}`);
    draw(waterfall, p.waterfall, `contributions ${p.time}`);
    heat.hidden = !p.heat;
    heat.parentElement.classList.toggle("single", !p.heat);
    if (p.heat) draw(heat, p.heat, `contributions by lag ${p.time}`);
  }

  function row(cells, numericFrom = 1) {
    const tr = document.createElement("tr");
    cells.forEach((text, place) => {
      const td = document.createElement("td");
      td.textContent = text;
      if (place >= numericFrom) td.className = "num";
      tr.append(td);
    });
    return tr;
  }

  function fillSums(p) {
    const table = byId("explorer-table");
    const rows = p.names.map((name, i) => row([name, signed(p.values[i]), short(p.lags[i])]));
    table.tBodies[0].replaceChildren(row(["typical forecast", p.shown.background, ""]), ...rows);
    table.tFoot.replaceChildren(row([`forecast for ${p.time}`, p.shown.forecast, ""]));
  }

  function setUpExplorer() {
    const select = byId("explorer-time");
    points.forEach((p, i) => {
      const option = document.createElement("option");
      option.value = String(i);
      option.textContent = p.next ? `${p.time} (next)` : p.last ? `${p.time} (last)` : p.time;
      select.append(option);
    });
    select.addEventListener("change", () => choose(Number(select.value)));
    byId("explorer-back").addEventListener("click", () => choose(current - 1));
    byId("explorer-on").addEventListener("click", () => choose(current + 1));
    byId("explorer-csv").addEventListener("click", () => {
      const p = points[current];
      save(`contributions ${p.time}`, {
        columns: ["part", "contribution", "strongest_lag"],
        data: [["typical forecast", ...p.names, "forecast"], [p.background, ...p.values, p.forecast],
          [null, ...p.lags, null]],
      });
    });
    drawn.set(byId("explorer-waterfall"), drawPoint);
    choose(current);
  }

  // ----------------------------------------------------------------------------- tables and files
  function csv(table) {
    const cell = (v) => {
      const text = v === null || v === undefined ? "" : String(v);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [table.columns.map(cell).join(",")];
    const n = table.data.length ? table.data[0].length : 0;
    for (let i = 0; i < n; i++) lines.push(table.data.map((column) => cell(column[i])).join(","));
    return lines.join("\r\n") + "\r\n";
  }

  function save(name, table) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv;charset=utf-8" }));
    link.download = `${name.replace(/[^\w.-]+/g, "-")}.csv`;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // As many digits as show the differences within a column.
  function digitsOf(column) {
    let least = Infinity, most = -Infinity;
    for (const v of column) {
      if (typeof v !== "number") continue;
      least = Math.min(least, v);
      most = Math.max(most, v);
    }
    const level = Math.max(Math.abs(least), Math.abs(most)), spread = most - least;
    return spread > 0 ? Math.min(6 + Math.max(0, Math.floor(Math.log10(level / spread))), 17) : 15;
  }

  function showRows(details) {
    const place = details.querySelector(".rows");
    if (!details.open || place.firstChild) return;
    const data = DATA.tables[details.dataset.table], most = 100;
    const n = data.data.length ? data.data[0].length : 0;
    const table = document.createElement("table");
    const head = document.createElement("tr");
    data.columns.forEach((name) => {
      const th = document.createElement("th");
      th.scope = "col";
      th.textContent = name;
      head.append(th);
    });
    table.createTHead().append(head);
    const body = table.createTBody();
    const digits = data.data.map(digitsOf);
    const write = (v, place) => typeof v === "number" ? short(v, digits[place]) : String(v ?? "");
    for (let i = Math.max(0, n - most); i < n; i++) {
      body.append(row(data.data.map((c, place) => write(c[i], place)), data.columns.length));
    }
    place.tabIndex = 0;
    place.append(table);
    if (n > most) {
      const note = document.createElement("p");
      note.className = "caption";
      note.textContent = `The last ${most} of ${n.toLocaleString("en")} rows; the CSV has all of them.`;
      place.append(note);
    }
  }

  // The number a cell begins with, such as the mean of "20.09 \u00b1 0.02"; null for other texts.
  function amount(cell) {
    if (typeof cell === "number") return cell;
    const found = /^[<>]?\s*([+\-\u2212]?[\d,]*\.?\d+(?:e[+\-\u2212]?\d+)?)(?=$|[\s%\u00b1(])/i.exec(String(cell));
    return found ? Number(found[1].replaceAll(",", "").replaceAll("\u2212", "-")) : null;
  }

  // Of these the smallest is best, and comes first at the first click.
  const LESS = /(^|[^a-z])(rmse|mae|crps|wape|p|p_value|seconds)([^a-z]|$)/i;

  function sortTable(table, column, button) {
    const header = button.closest("th"), source = DATA.tables[table.dataset.sortable];
    const texts = source.data[column].map((v) => v ?? "");
    const amounts = texts.map(amount), given = texts.filter((v) => v !== "").length;
    const numeric = 2 * amounts.filter((v) => v !== null).length > given;
    const down = numeric && !LESS.test(source.columns[column]);
    const first = down ? "descending" : "ascending", second = down ? "ascending" : "descending";
    const order = header.getAttribute("aria-sort") === first ? second : first;
    all("th", table).forEach((th) => th.setAttribute("aria-sort", "none"));
    header.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    // Cells that can be ordered come first, other texts after them, empty cells last.
    const rank = (i) => texts[i] === "" ? 2 : numeric && amounts[i] === null ? 1 : 0;
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const i = Number(a.dataset.row), j = Number(b.dataset.row);
      if (rank(i) !== rank(j) || rank(i) === 2) return rank(i) - rank(j);
      const both = numeric && rank(i) === 0;
      const words = () => String(texts[i]).localeCompare(String(texts[j]), "en", { numeric: true });
      return sign * (both ? amounts[i] - amounts[j] : words());
    });
    table.tBodies[0].append(...rows);
  }

  // ------------------------------------------------------------------------------------- set-up
  const themeButton = byId("theme");
  function showTheme() {
    themeButton.setAttribute("aria-pressed", String(isDark()));
  }
  if (stored()) root.dataset.theme = stored();
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("mvlstm-theme", root.dataset.theme); } catch { /* not kept */ }
    showTheme();
    redrawAll();
  });
  prefersDark.addEventListener("change", () => { showTheme(); redrawAll(); });
  showTheme();

  all("[data-csv]").forEach((b) => b.addEventListener("click", () => save(b.dataset.csv, DATA.tables[b.dataset.csv])));
  all("details[data-table]").forEach((d) => d.addEventListener("toggle", () => showRows(d)));
  all("table[data-sortable]").forEach((table) => all("[data-column]", table).forEach((button) =>
    button.addEventListener("click", () => sortTable(table, Number(button.dataset.column), button))));

  function keepInView(link) { // in a menu that is longer than the screen
    const menu = link.offsetParent;
    if (!menu?.matches(".contents")) return;
    const above = link.offsetTop < menu.scrollTop;
    const below = link.offsetTop + link.offsetHeight > menu.scrollTop + menu.clientHeight;
    if (above || below) menu.scrollTop = link.offsetTop - menu.clientHeight / 2;
  }
  const links = new Map(all(".contents a").map((a) => [a.hash.slice(1), a]));
  const observer = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    links.forEach((a) => a.removeAttribute("aria-current"));
    const link = links.get(entry.target.id);
    link?.setAttribute("aria-current", "true");
    if (link) keepInView(link);
  }), { rootMargin: "-10% 0px -75% 0px" });
  all("section.question").forEach((section) => observer.observe(section));

  all("[data-figure]").forEach(setUpFigure);
  if (points.length) setUpExplorer();
  addEventListener("beforeprint", () => {
    printing = true;
    redrawAll();
    waiting.forEach((show) => show());
  });
  addEventListener("afterprint", () => {
    printing = false;
    redrawAll();
    all(".js-plotly-plot").forEach((element) => Plotly.Plots.resize(element)); // back to the screen
  });
  root.dataset.ready = "true";
})();
