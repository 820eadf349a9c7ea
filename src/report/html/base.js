/* The data, words and numbers, colours of cases, small helpers for elements. */
var page = JSON.parse(document.getElementById("findings").textContent);
var findings = page.findings;
var labels = page.labels;

/** An element with attributes and children; text always becomes text, never markup. */
function element(tag, attributes, children) {
  var made = document.createElement(tag);
  Object.keys(attributes || {}).forEach(function (name) { made.setAttribute(name, attributes[name]); });
  (children || []).forEach(function (child) { made.append(child); });
  return made;
}

/** Three or four significant digits, thousands apart: 12 345, 1.23, 0.0123. */
function shown(value) {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  if (value === 0) return "0";
  var magnitude = Math.floor(Math.log10(Math.abs(value)));
  var text = magnitude >= 3 ? String(Math.round(value)) : String(Number(value.toFixed(Math.min(12, 2 - magnitude))));
  var parts = text.split(".");
  if (parts[0].replace("-", "").length > 4) parts[0] = parts[0].replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return parts.join(".");
}

/** A time in milliseconds with its own unit. Counted in whole microseconds: 0 is less than one. */
function shownMs(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms === 0) return "under 1 us";
  if (ms < 1) return shown(ms * 1000) + " us";
  return ms < 1000 ? shown(ms) + " ms" : shown(ms / 1000) + " s";
}

/** The ends of a figure's 95 % interval; null without one. */
function shownInterval(estimate) {
  if (estimate.low === null) return null;
  var far = function (one, other) { return other > 0 && one > 10 * other; };
  if (far(estimate.high, estimate.value) || far(estimate.value, estimate.low)) return "reaches beyond 10×";
  return shown(estimate.low) + " – " + shown(estimate.high);
}

/** A span in seconds: 45 s, 12:30 min, 3:05 h. */
function shownSpan(seconds) {
  var two = function (n) { return (n < 10 ? "0" : "") + n; };
  seconds = Math.round(seconds);
  if (seconds < 600) return seconds + " s";
  if (seconds % 3600 === 0) return seconds / 3600 + " h";
  if (seconds < 7200) return Math.floor(seconds / 60) + ":" + two(seconds % 60) + " min";
  return Math.floor(seconds / 3600) + ":" + two(Math.floor(seconds / 60) % 60) + " h";
}

function label(id) { return labels[id] || id; }

var caseById = {};
findings.cases.forEach(function (found) { caseById[found.id] = found; });

function isVolatile(id) { return caseById[id] !== undefined && caseById[id].durability.class === "volatile"; }

/** Stacks in the plan's order; each has one colour on the whole page. Volatile cases are grey whatever their stack. */
var stacks = [];
var greyStacks = [];
findings.cases.forEach(function (found) {
  var list = isVolatile(found.id) ? greyStacks : stacks;
  var name = stackOf(found.id);
  if (list.indexOf(name) < 0) list.push(name);
});

function stackOf(id) {
  var found = caseById[id];
  return found && found.axes.stack !== undefined ? found.axes.stack : id;
}

function variable(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }

/** The colour of a case as the name of a style sheet variable. */
function colourName(id) {
  if (isVolatile(id)) return "grey" + (1 + greyStacks.indexOf(stackOf(id)) % 3);
  return "c" + (1 + Math.max(0, stacks.indexOf(stackOf(id))) % 8);
}

var symbols = ["circle", "rect", "triangle", "diamond", "pin", "roundRect"];

/** Second sign beside the colour: the shape of a case's points, by its stack. */
function symbolOf(id) {
  if (isVolatile(id)) return "emptyCircle";
  return symbols[Math.max(0, stacks.indexOf(stackOf(id))) % symbols.length];
}

/** A colour towards the background (share below 0) or the text (above 0). */
function mixed(colour, share) {
  var parse = function (hex) { return [1, 3, 5].map(function (at) { return parseInt(hex.substr(at, 2), 16); }); };
  var from = parse(colour), to = parse(share < 0 ? variable("bg") : variable("text")), part = Math.abs(share);
  return "#" + from.map(function (v, i) {
    return ("0" + Math.round(v + (to[i] - v) * part).toString(16)).slice(-2);
  }).join("");
}

var pen = document.createElement("canvas").getContext("2d");
var fontFamily = getComputedStyle(document.body).fontFamily;

/** Width of a text in a chart, pixels. */
function textWidth(text, size, weight) {
  pen.font = (weight || 400) + " " + (size || 12) + "px " + fontFamily;
  return pen.measureText(text).width;
}
