/* Sections: links open and reach them, their charts are drawn when they open, wide tables say so. */

/** Draws what is inside `part` and was not drawn at its present width and colors. */
function showPart(part) {
  charts.forEach(function (entry) {
    if (part.contains(entry.holder) && (!entry.instance || entry.stale || entry.width !== entry.holder.clientWidth)) draw(entry);
  });
  markWide();
}

/** Marks the tables that have columns out of view, so that a hint shows. */
function markWide() {
  document.querySelectorAll("figure.table").forEach(function (figure) {
    var box = figure.querySelector(".scroll");
    figure.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
  });
}

/** The height that the fixed navigation covers at the top; 0 where it scrolls away. */
function covered() {
  var nav = document.querySelector("nav");
  return getComputedStyle(nav).position === "sticky" ? nav.offsetHeight : 0;
}

/** Opens the section `id` and everything around it, and puts its heading at the top of the view. */
function land(id) {
  var target = id && document.getElementById(id);
  if (!target || !document.querySelector("main").contains(target)) return false;
  for (var one = target; one; one = one.parentElement) {
    if (one.tagName === "DETAILS" && !one.open) one.open = true;
  }
  showPart(target);
  document.documentElement.style.setProperty("--covered", covered() + "px");
  // The last sections are too short to reach the top of the view without room below them.
  var spacer = document.getElementById("spacer");
  spacer.style.height = "0";
  var margin = parseFloat(getComputedStyle(target).scrollMarginTop) || 0;
  var top = target.getBoundingClientRect().top + window.scrollY - margin;
  var missing = top + window.innerHeight - document.documentElement.scrollHeight;
  if (missing > 0) spacer.style.height = Math.ceil(missing) + "px";
  target.scrollIntoView({ behavior: "instant", block: "start" });
  return true;
}

function startSections() {
  document.addEventListener("click", function (event) {
    var link = event.target.closest('a[href^="#"]');
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    var id = link.getAttribute("href").slice(1);
    if (!land(id)) return;
    event.preventDefault();
    if (location.hash !== "#" + id) history.pushState(null, "", "#" + id);
  });
  window.addEventListener("popstate", function () { land(location.hash.slice(1)); });
  window.addEventListener("resize", markWide);
  document.addEventListener("toggle", function (event) {
    if (event.target.open && !printing) showPart(event.target);
  }, true);
  var all = document.getElementById("open-all");
  all.hidden = false;
  all.addEventListener("click", function () {
    var parts = Array.from(document.querySelectorAll("details.part"));
    var open = parts.some(function (part) { return !part.open; });
    parts.forEach(function (part) { part.open = open; });
    all.textContent = open ? "Collapse all" : "Expand all";
  });
  charts.forEach(draw);
  markWide();
  if (location.hash) land(location.hash.slice(1));
}
