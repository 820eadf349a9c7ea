/* Every chart: drawn at once where its section is open, else when that opens; again when width or colours change. */
var charts = [];
var printing = false;
/** Width of a chart on paper, CSS pixels: fits A4 and US letter. */
var PAPER_WIDTH = 690;

/**
 * Registers a chart. `make(width)` gives its ECharts option and, where it decides on it, its height.
 */
function chart(holder, make) {
  var entry = { holder: holder, make: make, instance: null, wanted: false };
  charts.push(entry);
  // Before the next frame, and after the caller has set what else belongs to the entry.
  Promise.resolve().then(function () { if (!entry.wanted && charts.indexOf(entry) >= 0) draw(entry); });
  return entry;
}

/** Whether it lies in a section that is not open; such an element still has a width. */
function isFolded(holder) { return holder.closest("details:not([open])") !== null; }

function draw(entry) {
  var paper = holderPaperWidth(entry);
  var width = printing ? paper : entry.holder.clientWidth;
  if (width < 20 || isFolded(entry.holder)) {
    entry.stale = true;
    return;
  }
  entry.stale = false;
  entry.wanted = true;
  entry.width = width;
  var made = entry.make(width);
  if (made.height) entry.holder.style.height = made.height + "px";
  var size = { width: width, height: made.height || entry.holder.clientHeight };
  if (entry.instance === null) {
    var ratio = Math.max(2, window.devicePixelRatio || 1);
    entry.instance = echarts.init(entry.holder, null, { renderer: "canvas", devicePixelRatio: ratio, width: size.width, height: size.height });
    if (entry.created) entry.created(entry.instance);
  } else {
    entry.instance.resize(size);
  }
  if (entry.group) entry.instance.group = entry.group;
  entry.instance.setOption(made.option, { notMerge: true, silent: true });
}

function holderPaperWidth(entry) { return entry.small ? Math.floor(PAPER_WIDTH / 2) - 16 : PAPER_WIDTH; }

/** Draws again what has been drawn. */
function redraw(entry) { if (entry.wanted) draw(entry); }

/** Forgets charts whose holders are taken off the page. */
function forget(gone) {
  gone.forEach(function (entry) {
    if (entry.instance) entry.instance.dispose();
    charts.splice(charts.indexOf(entry), 1);
  });
}

var lastWidth = document.documentElement.clientWidth;
window.addEventListener("resize", function () {
  if (printing || document.documentElement.clientWidth === lastWidth) return;
  lastWidth = document.documentElement.clientWidth;
  charts.forEach(redraw);
});

/** What all charts share. */
function baseOption() {
  return {
    animation: false,
    backgroundColor: "transparent",
    textStyle: { fontFamily: fontFamily, color: variable("text"), fontSize: 12 },
    aria: { enabled: false },
    tooltip: tooltip()
  };
}

function tooltip() {
  return {
    confine: true, transitionDuration: 0, backgroundColor: variable("bg"), borderColor: variable("line-strong"),
    borderWidth: 1, padding: [6, 10], textStyle: { color: variable("text"), fontSize: 12 }
  };
}

/** The inside of a tooltip: a heading and lines of colour, name, value. Elements, so that names stay text. */
function tip(heading, lines) {
  var children = [element("b", {}, [heading])];
  lines.slice(0, 14).forEach(function (line) {
    var dot = element("span", { "class": "dot" });
    dot.style.background = line.colour || "transparent";
    children.push(element("div", {}, [
      element("span", { "class": "key" }, [dot, line.name]), element("span", { "class": "val" }, [line.value])
    ]));
  });
  if (lines.length > 14) children.push(element("div", {}, ["and " + (lines.length - 14) + " more"]));
  return element("div", { "class": "tip" }, children);
}

/** Looks of a value axis; `more` wins. */
function axis(more) {
  return Object.assign({
    type: "value",
    axisLine: { show: false, onZero: false },
    axisTick: { show: false },
    axisLabel: { color: variable("muted"), fontSize: 11, hideOverlap: true, formatter: shown },
    nameTextStyle: { color: variable("muted"), fontSize: 11 },
    splitLine: { lineStyle: { color: variable("line") } },
    minorSplitLine: { show: false }
  }, more);
}

/** Looks of an axis that lies along the bottom with a line. */
function bottomAxis(more) {
  return axis(Object.assign({
    axisLine: { show: true, onZero: false, lineStyle: { color: variable("line-strong") } },
    axisTick: { show: true, lineStyle: { color: variable("line-strong") } },
    splitLine: { show: false }
  }, more));
}

/** Buttons that show and hide; `items` are {name, colour, dashed, pressed, hint}. */
function chips(holder, items, toggle) {
  holder.replaceChildren.apply(holder, items.map(function (item) {
    var swatch = element("span", { "class": "swatch" + (item.dashed ? " dashed" : ""), "aria-hidden": "true" });
    if (item.pressed && item.colour) swatch.style.borderTopColor = item.colour;
    var button = element("button", { type: "button", "aria-pressed": String(item.pressed) }, item.colour === undefined ? [item.name] : [swatch, item.name]);
    if (item.hint) button.title = item.hint;
    if (item.id) button.dataset.id = item.id;
    button.addEventListener("click", function () { toggle(item); });
    return button;
  }));
}

/** A round step so that about `parts` of them reach `top`: 1, 2, 2.5 or 5 times a power of ten. */
function roundStep(top, parts) {
  var least = (top > 0 ? top : 1) / parts;
  var power = Math.pow(10, Math.floor(Math.log10(least)));
  return [1, 2, 2.5, 5, 10].find(function (s) { return s * power >= least * 0.9999; }) * power;
}

/**
 * Top of a linear scale from 0: all whiskers, unless one is so long that it would squeeze the figures themselves into the
 * lower part; such a whisker leaves the chart.
 */
function scaleTop(rates) {
  var most = function (pick) { return Math.max.apply(null, [0].concat(rates.map(pick))); };
  var values = most(function (rate) { return rate.value; });
  return Math.min(1.02 * Math.max(values, most(function (rate) { return rate.high === null ? 0 : rate.high; })), 2.2 * values);
}

/** Round steps of time, seconds. */
var SPAN_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 345600, 864000];

/** Marks of a time axis over `seconds`: about `parts` of them, at round times only (an axis also has its ends). */
function spanMarks(seconds, parts, size) {
  var step = SPAN_STEPS.find(function (s) { return s * parts >= seconds; }) || seconds / parts;
  return { interval: step, axisLabel: { color: variable("muted"), fontSize: size, hideOverlap: true, formatter: function (v) { return Math.abs(v % step) < 1e-6 ? shownSpan(v) : ""; } } };
}

/** Marks of a logarithmic axis between `low` and `high`: 1-2-5 over few powers of ten, else the powers alone. */
function logMarks(low, high) {
  var few = Math.log10(high / low) <= 3, marks = [];
  for (var power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    (few ? [1, 2, 5] : [1]).forEach(function (s) { marks.push(Number((s * Math.pow(10, power)).toPrecision(1))); });
  }
  var from = marks.filter(function (m) { return m <= low; }).pop(), to = marks.find(function (m) { return m >= high; });
  return marks.filter(function (m) { return m >= from && m <= to; });
}

/** A logarithmic axis around these values. */
function logAxis(values, format, more) {
  var positive = values.filter(function (v) { return v > 0; });
  var marks = logMarks(Math.min.apply(null, positive.concat(positive.length ? [] : [1])), Math.max.apply(null, positive.concat(positive.length ? [] : [10])));
  return axis(Object.assign({ type: "log", min: marks[0], max: marks[marks.length - 1], axisTick: { show: false, customValues: marks },
    axisLabel: { color: variable("muted"), fontSize: 11, hideOverlap: true, customValues: marks, formatter: format } }, more));
}
