/* Puts the page to work: CSV buttons, theme, printing, charts. */

/** A table as CSV, from what its elements carry in full precision; the same bytes as pgstrata itself writes. */
function tableCsv(table) {
  var field = function (text) {
    return /[",\r\n]/.test(text) || text.trim() !== text ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  var line = function (owner) { return JSON.parse(owner.dataset.csv).map(field).join(",") + "\r\n"; };
  return line(table) + Array.from(table.querySelectorAll("tr[data-csv]")).map(line).join("");
}

function startCsv() {
  document.querySelectorAll("button.csv").forEach(function (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      var id = button.dataset.table;
      var address = URL.createObjectURL(new Blob([tableCsv(document.getElementById(id))], { type: "text/csv" }));
      var name = (findings.run.name + "-" + button.dataset.file).replace(/[^A-Za-z0-9._-]+/g, "-") + ".csv";
      element("a", { href: address, download: name }).click();
      setTimeout(function () { URL.revokeObjectURL(address); }, 10000);
    });
  });
}

/** Called when colours change: whatever is coloured outside of charts. */
var recolour = [];

function repaint() {
  recolour.forEach(function (again) { again(); });
  charts.forEach(redraw);
}

function startTheme() {
  var button = document.getElementById("theme"), root = document.documentElement;
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  var kept = null;
  try { kept = localStorage.getItem("pgstrata-theme"); } catch (e) { kept = null; }
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  var dark = function () { return root.dataset.theme ? root.dataset.theme === "dark" : system.matches; };
  var name = function () { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", "Switch to " + (dark() ? "light" : "dark") + " colors"); };
  button.hidden = false;
  name();
  button.addEventListener("click", function () {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("pgstrata-theme", root.dataset.theme); } catch (e) { /* a private window keeps nothing */ }
    name();
    repaint();
  });
  system.addEventListener("change", function () { name(); repaint(); });
}

/** On paper: light colors, every caution, and the charts of open sections at the paper's width. What else is folded stays folded. */
function startPrinting() {
  var opened = [];
  window.addEventListener("beforeprint", function () {
    if (printing) return;
    var seen = charts.filter(function (entry) { return !isFolded(entry.holder); });
    printing = true;
    opened = Array.from(document.querySelectorAll(".cautions details:not([open])"));
    opened.forEach(function (one) { one.open = true; });
    document.documentElement.dataset.print = "yes";
    recolour.forEach(function (again) { again(); });
    seen.forEach(draw);
  });
  window.addEventListener("afterprint", function () {
    printing = false;
    opened.forEach(function (one) { one.open = false; });
    delete document.documentElement.dataset.print;
    recolour.forEach(function (again) { again(); });
    charts.forEach(redraw);
  });
}

var KINDS = { ranking: rankingChart, clients: clientsChart, seconds: secondsChart, latency: latencyChart, waits: waitsChart, capacity: capacityChart, ageing: ageingChart };

startCsv();
startTheme();
document.querySelectorAll("[data-chart]").forEach(function (holder) { KINDS[holder.dataset.chart](holder); });
compareChips();
recolour.push(compareChips);
telemetryStart();
startPrinting();
startSections();
