/* Time charts: one zoom and one pointer for all of them, drawn over whatever library draws the chart itself. */

/** The seconds in view, {from, to}; null: the whole measurement. */
var timeView = null;
/** Every time chart that is drawn: its entry, and what it shows at a moment. */
var timeCharts = [];
/** Lines of more checkpoints than this hide what they mark. */
var MOST_STARTS = 40;
/** Shortest stretch that can be zoomed to, seconds. */
var SHORTEST_VIEW = 3;

/** The part of `length` seconds that is in view. */
function viewOf(length) {
  if (!timeView || timeView.from >= length) return { from: 0, to: length };
  return { from: timeView.from, to: Math.min(timeView.to, length) };
}

/** Shows these seconds in every time chart; nothing: all. */
function setView(from, to) {
  timeView = from === undefined ? null : { from: Math.max(0, from), to: to };
  document.querySelectorAll(".zoom-out").forEach(function (button) { button.hidden = timeView === null; });
  document.querySelectorAll(".zoom-range").forEach(function (range) {
    range.textContent = timeView === null ? "" : "Zoomed to " + shownSpan(timeView.from) + " – " + shownSpan(timeView.to);
  });
  timeCharts.slice().forEach(function (one) { redraw(one.entry); });
}

/**
 * Makes the chart of `entry` a time chart. `plot` says where its plot lies: {left, right} from the sides of the holder and
 * `length`, its seconds when nothing is zoomed; `hover(second)` is told where the pointer is, or null.
 */
function timeChart(entry, plot, hover) {
  var one = { entry: entry, plot: plot, hover: hover || function () {}, pointer: element("div", { "class": "time-pointer" }), brush: element("div", { "class": "time-brush" }) };
  one.pointer.hidden = one.brush.hidden = true;
  entry.holder.classList.add("time");
  var created = entry.created;
  entry.created = function (instance) {
    if (created) created(instance);
    entry.holder.append(one.pointer, one.brush);
  };
  timeCharts.push(one);
  listenToTime(one);
  return one;
}

/** Forgets the time charts of entries that are taken off the page. */
function forgetTime(entries) {
  timeCharts = timeCharts.filter(function (one) { return entries.indexOf(one.entry) < 0; });
}

/** The second at a place in a chart, and the place of a second. */
function secondAt(one, x) {
  var plot = one.plot(), view = viewOf(plot.length), width = one.entry.holder.clientWidth - plot.left - plot.right;
  return view.from + Math.min(1, Math.max(0, (x - plot.left) / width)) * (view.to - view.from);
}

function placeOf(one, second) {
  var plot = one.plot(), view = viewOf(plot.length), width = one.entry.holder.clientWidth - plot.left - plot.right;
  return plot.left + (second - view.from) / (view.to - view.from) * width;
}

/** The pointer of all charts goes to a second; null takes it away. */
function point(second) {
  timeCharts.forEach(function (one) {
    var plot = one.plot(), view = viewOf(plot.length);
    var inside = second !== null && second >= view.from && second <= view.to && one.entry.instance !== null;
    one.pointer.hidden = !inside;
    if (inside) one.pointer.style.left = placeOf(one, second) + "px";
    if (plot.bottom !== undefined) one.pointer.style.height = one.brush.style.height = plot.bottom + "px";
    one.hover(inside ? second : null);
  });
}

/** Hover points; dragging with a mouse or pen zooms; a double click shows everything again. A finger scrolls the page. */
function listenToTime(one) {
  var holder = one.entry.holder, from = null;
  var at = function (event) { return event.clientX - holder.getBoundingClientRect().left; };
  var inPlot = function (x) { var plot = one.plot(); return x >= plot.left - 4 && x <= holder.clientWidth - plot.right + 4; };
  holder.addEventListener("pointermove", function (event) {
    var x = at(event);
    point(inPlot(x) || from !== null ? secondAt(one, x) : null);
    if (from === null) return;
    one.brush.hidden = false;
    var ends = [from, x].map(function (end) { return placeOf(one, secondAt(one, end)); }).sort(function (a, b) { return a - b; });
    one.brush.style.left = ends[0] + "px";
    one.brush.style.width = ends[1] - ends[0] + "px";
  });
  holder.addEventListener("pointerdown", function (event) {
    var plot = one.plot();
    if (event.pointerType === "touch" || event.button !== 0 || !inPlot(at(event))) return;
    if (plot.bottom !== undefined && event.clientY - holder.getBoundingClientRect().top > plot.bottom) return;
    from = at(event);
    holder.setPointerCapture(event.pointerId);
  });
  holder.addEventListener("pointerup", function (event) {
    if (from === null) return;
    var ends = [secondAt(one, from), secondAt(one, at(event))].sort(function (a, b) { return a - b; }), moved = Math.abs(at(event) - from);
    from = null;
    one.brush.hidden = true;
    if (moved < 6) return;
    var middle = (ends[0] + ends[1]) / 2, half = Math.max(SHORTEST_VIEW, ends[1] - ends[0]) / 2;
    setView(Math.round(Math.max(0, middle - half)), Math.round(middle + half));
  });
  holder.addEventListener("pointercancel", function () { from = null; one.brush.hidden = true; });
  holder.addEventListener("pointerleave", function () { if (from === null) point(null); });
  holder.addEventListener("dblclick", function () { setView(); });
}

/** The time axis of a chart of `length` seconds with about `parts` marks. */
function timeAxis(length, parts, size, more) {
  var view = viewOf(length);
  return bottomAxis(Object.assign({ min: view.from, max: view.to }, spanMarks(view.to - view.from, parts, size), more));
}

/** The points of a series that are in view, and one beyond either side: so the other axis fits what is seen. */
function pointsInView(series, values, length) {
  var view = viewOf(length);
  return points(series, values).filter(function (point) {
    var x = (point.value || point)[0];
    return x >= view.from - 1.5 * series.bucket_s && x <= view.to + 1.5 * series.bucket_s;
  });
}

/** Place of a second in the buckets of a series. */
function bucketAt(second, bucket_s) { return Math.max(0, Math.ceil(second / bucket_s) - 1); }

/** Starts of checkpoints as dashed lines over whatever a chart shows, and their length as a tint. */
function checkpointMarks(trial, length, colour, axes) {
  var bands = checkpointBands(trial, length, colour, axes);
  var view = viewOf(length);
  var starts = (trial.window ? trial.window.checkpoints : []).filter(function (one) { return one.start_s >= view.from && one.start_s < view.to; });
  if (starts.length > MOST_STARTS) return bands;
  bands.markLine = { silent: true, animation: false, symbol: "none", label: { show: false }, lineStyle: { color: colour, width: 1, type: [3, 3], opacity: 0.8 },
    data: starts.map(function (one) { return { xAxis: one.start_s }; }) };
  return bands;
}

document.querySelectorAll(".zoom-out").forEach(function (button) { button.addEventListener("click", function () { setView(); }); });
