// Asks for the state of a run again until it has ended. Everything is put in as text, never as markup.
(function () {
"use strict";
var EVERY_MS = 2000;
var live = document.getElementById("live"), lost = document.getElementById("lost");
function put(id, text) { document.getElementById(id).textContent = text; }
function show(view) {
  ["measured", "trials", "not_run", "left", "now", "last", "state"].forEach(function (id) { put(id, view[id]); });
  document.getElementById("state").className = "state " + view.state;
  var progress = document.getElementById("progress");
  progress.max = view.trials;
  progress.value = view.measured;
  var warnings = document.getElementById("warnings"), list = warnings.querySelector("ul");
  warnings.hidden = view.warnings.length === 0;
  list.replaceChildren.apply(list, view.warnings.map(function (text) {
    var item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  if (!view.is_live) put("report", "Report");
  return view.is_live;
}
function ask() {
  fetch(live.dataset.status, { cache: "no-store" }).then(function (answer) {
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }).then(function (view) {
    lost.hidden = true;
    return show(view);
  }, function () {
    lost.hidden = false;
    return true;
  }).then(function (again) {
    if (again) setTimeout(ask, EVERY_MS);
  });
}
ask();
})();
