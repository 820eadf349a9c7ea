/* Cases laid over each other: second by second, and by percentile. Both charts show the same chosen cases. */
var measuredCases = findings.cases.filter(function (found) {
  return findings.trials.some(function (trial) { return trial.case === found.id; });
}).map(function (found) { return found.id; });
var chosen = firstChoice();
var trialNumbers = findings.trials.map(function (t) { return t.trial; }).filter(function (n, i, all) { return all.indexOf(n) === i; }).sort(function (a, b) { return a - b; });
var chosenTrials = trialNumbers.slice(0, 1);
var chosenMeasure = "";
var compareEntries = [];

/** To begin with: the best three of the first ranking that survive a power cut. */
function firstChoice() {
  var ids = [];
  findings.rankings.slice(0, 1).forEach(function (ranking) {
    ranking.classes.forEach(function (block) {
      if (block.class !== "volatile") block.rows.forEach(function (row) { ids.push(row.case); });
    });
  });
  ids = ids.filter(function (id) { return measuredCases.indexOf(id) >= 0; }).slice(0, 3);
  return ids.length ? ids : measuredCases.slice(0, 3);
}

/** Colour of a case among those that are shown together: its stack's, in shades where several of them share a stack. */
function lookAmong(id, together) {
  var alike = together.filter(function (other) { return colourName(other) === colourName(id); });
  var shade = Math.max(0, alike.indexOf(id));
  return { colour: mixed(variable(colourName(id)), [0, -0.42, 0.38, -0.6, 0.6][shade % 5]), dash: isVolatile(id) ? "dashed" : ["solid", [7, 3], [2, 2]][shade % 3] };
}

function chosenLook(id) { return lookAmong(id, chosen); }

function compareChips() {
  document.querySelectorAll('[data-chips="cases"]').forEach(function (holder) {
    chips(holder, measuredCases.map(function (id) {
      var look = chosenLook(id);
      return { id: id, name: label(id), colour: look.colour, dashed: look.dash !== "solid", pressed: chosen.indexOf(id) >= 0, hint: caseById[id].durability.class + ": " + caseById[id].durability.reason };
    }), function (item) { toggleIn(chosen, item.id); compareChanged(); });
  });
  document.querySelectorAll('[data-chips="trials"]').forEach(function (holder) {
    if (trialNumbers.length < 2) return;
    chips(holder, trialNumbers.map(function (n) {
      return { id: String(n), name: "trial " + n, pressed: chosenTrials.indexOf(n) >= 0 };
    }), function (item) { toggleIn(chosenTrials, Number(item.id)); compareChanged(); });
  });
}

function toggleIn(list, item) {
  var at = list.indexOf(item);
  if (at < 0) list.push(item); else list.splice(at, 1);
}

function compareChanged() {
  compareChips();
  compareEntries.forEach(redraw);
}

/* Second by second */
function secondsChart(holder) {
  var entry = chart(holder, function (width) { return secondsOption(entry, width); });
  compareEntries.push(entry);
  entry.created = function (instance) {
    instance.on("datazoom", function () {
      var zoom = instance.getOption().dataZoom[0];
      if (zoom.start <= 0 && zoom.end >= 100) setView(); else setView(zoom.start / 100 * entry.length, zoom.end / 100 * entry.length);
    });
  };
  // Its bar below the plot has a drag of its own.
  timeChart(entry, function () { return { left: SECONDS_LEFT, right: SECONDS_RIGHT, bottom: 410, length: entry.length || 1 }; });
}

/** Space beside the plots of the chart. */
var SECONDS_LEFT = 58, SECONDS_RIGHT = 14;

/** The part of the measurement that is in view, per cent. */
function zoomOf(entry) {
  var view = viewOf(entry.length);
  return { start: view.from / entry.length * 100, end: view.to / entry.length * 100 };
}

function secondsMarks(entry, zoom) {
  return spanMarks((zoom.end - zoom.start) / 100 * entry.length, entry.width < 560 ? 4 : 8, 11);
}

/** The chosen trials with their looks; trials of one case differ in opacity. */
function chosenSeries() {
  var found = [];
  findings.trials.forEach(function (trial) {
    var nth = chosenTrials.indexOf(trial.trial);
    if (chosen.indexOf(trial.case) < 0 || nth < 0) return;
    var look = chosenLook(trial.case);
    found.push({ trial: trial, name: label(trial.case) + (chosenTrials.length > 1 ? ", trial " + trial.trial : ""), colour: look.colour, dash: look.dash, opacity: [1, 0.65, 0.45][Math.min(nth, 2)] });
  });
  return found;
}

/** Points of a series: [second at the bucket's middle, value]. A value between two gaps has no line: it gets a dot. */
function points(series, values) {
  return values.map(function (value, i) {
    var at = [i * series.bucket_s + (series.bucket_s + 1) / 2, value];
    var alone = value !== null && (i === 0 || values[i - 1] === null) && (i + 1 === values.length || values[i + 1] === null);
    return alone ? { value: at, symbol: "circle", symbolSize: 6 } : at;
  });
}

/** Bands of more trials than this hide each other. */
var MOST_WITH_CHECKPOINTS = 3;

/** A series without points, whose bands are the checkpoints of a trial: from the start of each to its end. */
function checkpointBands(trial, length, colour, axes) {
  var all = trial.window ? trial.window.checkpoints : [];
  var bands = all.filter(function (one) { return one.start_s < length; }).map(function (one) {
    return [{ xAxis: Math.max(0, one.start_s) }, { xAxis: Math.min(length, one.end_s === null ? length : one.end_s) }];
  });
  return Object.assign({ type: "scatter", data: [], silent: true, tooltip: { show: false },
    markArea: { silent: true, animation: false, itemStyle: { color: colour, opacity: 0.09, borderColor: colour, borderWidth: 1 }, data: bands } }, axes);
}

function most(series) { return series.max.length ? series.max : series.min; }

function secondsOption(entry, width) {
  var shownTrials = chosenSeries(), option = baseOption();
  var unit = shownTrials.length && shownTrials[0].trial.throughput ? shownTrials[0].trial.throughput.unit : "operations/s";
  var length = Math.max.apply(null, [1].concat(shownTrials.map(function (one) { var s = one.trial.throughput; return s ? s.min.length * s.bucket_s : 1; })));
  var left = SECONDS_LEFT, right = SECONDS_RIGHT;
  entry.length = length;
  var zoom = zoomOf(entry), marks = secondsMarks(entry, zoom);
  option.grid = [{ left: left, right: right, top: 28, height: 200, outerBoundsMode: "none" }, { left: left, right: right, top: 272, height: 130, outerBoundsMode: "none" }];
  var span = function (more) { return bottomAxis(Object.assign({ min: 0, max: length }, marks, more)); };
  option.xAxis = [span({ gridIndex: 0, axisLabel: { show: false } }), span({ gridIndex: 1, name: "time since the measurement began", nameLocation: "middle", nameGap: 26 })];
  var left0 = { color: variable("muted"), align: "left", padding: [0, 0, 0, -46] };
  option.yAxis = [axis({ gridIndex: 0, name: unit + " in each second", min: 0, nameTextStyle: left0 }),
    logAxis(slowestValues(shownTrials), shownMs, { gridIndex: 1, name: "slowest operation of each second, log scale", nameTextStyle: left0 })];
  option.axisPointer = { link: [{ xAxisIndex: "all" }], lineStyle: { color: variable("line-strong") }, label: { show: false } };
  option.dataZoom = zoomers(zoom, length);
  option.tooltip.trigger = "axis";
  option.tooltip.formatter = secondsTip(shownTrials);
  option.series = [];
  shownTrials.forEach(function (one) { addThroughput(option.series, one); addSlowest(option.series, one); });
  if (shownTrials.length <= MOST_WITH_CHECKPOINTS) shownTrials.forEach(function (one) {
    [0, 1].forEach(function (grid) { option.series.push(checkpointMarks(one.trial, length, one.colour, { xAxisIndex: grid, yAxisIndex: grid })); });
  });
  if (!shownTrials.length) option.title = { text: "No case selected", left: "center", top: 110, textStyle: { color: variable("muted"), fontWeight: 400, fontSize: 14 } };
  return { option: option, height: 500 };
}

/** Zoom by the bar and by pinching, for all time charts. The wheel is left to the page. */
function zoomers(zoom, length) {
  var both = { xAxisIndex: [0, 1], start: zoom.start, end: zoom.end, filterMode: "none", minValueSpan: Math.min(5, length) };
  return [Object.assign({ type: "slider", height: 20, bottom: 6, left: SECONDS_LEFT, right: SECONDS_RIGHT, brushSelect: false, showDetail: false,
      borderColor: variable("line"), fillerColor: variable("band") + "88", backgroundColor: variable("panel"), showDataShadow: false,
      handleStyle: { color: variable("bg"), borderColor: variable("line-strong") }, moveHandleStyle: { color: variable("line-strong") }, moveHandleSize: 5 }, both),
    Object.assign({ type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, moveOnMouseMove: false, preventDefaultMouseMove: false }, both)];
}

/** Every second's slowest operation of the chosen trials, without gaps; long runs are thinned by their extremes. */
function slowestValues(shownTrials) {
  var ends = [];
  shownTrials.forEach(function (one) {
    var values = one.trial.latency_ms_max ? most(one.trial.latency_ms_max).filter(function (v) { return v > 0; }) : [];
    if (values.length) ends.push(values.reduce(function (a, b) { return Math.min(a, b); }), values.reduce(function (a, b) { return Math.max(a, b); }));
  });
  return ends;
}

function addThroughput(list, one) {
  var series = one.trial.throughput;
  if (!series) return;
  var line = { type: "line", xAxisIndex: 0, yAxisIndex: 0, symbol: "none", lineStyle: { color: one.colour, width: 1.5, opacity: one.opacity, type: one.dash }, itemStyle: { color: one.colour }, emphasis: { disabled: true } };
  if (series.max.length) {
    var name = one.trial.case + "\n" + one.trial.trial;
    line.lineStyle = { color: one.colour, width: 0.8, opacity: one.opacity };
    list.push(Object.assign({}, line, { data: points(series, series.min), stack: name, stackStrategy: "all" }));
    var spread = series.max.map(function (high, i) { return high === null ? null : high - series.min[i]; });
    list.push(Object.assign({}, line, { data: points(series, spread), stack: name, stackStrategy: "all", areaStyle: { color: one.colour, opacity: 0.3 * one.opacity } }));
  } else {
    list.push(Object.assign({}, line, { data: points(series, series.min) }));
  }
  list.push({ type: "scatter", xAxisIndex: 0, yAxisIndex: 0, silent: true, symbol: "triangle", symbolSize: 8, z: 5, clip: false, itemStyle: { color: one.colour, borderColor: variable("bg"), borderWidth: 1 },
    data: points(series, series.min).map(function (p) { return p.value || p; }).filter(function (p) { return p[1] === 0; }), tooltip: { show: false } });
}

function addSlowest(list, one) {
  var series = one.trial.latency_ms_max;
  if (!series) return;
  var positive = most(series).map(function (v) { return v > 0 ? v : null; });
  list.push({ type: "line", xAxisIndex: 1, yAxisIndex: 1, symbol: "none", data: points(series, positive), lineStyle: { color: one.colour, width: 1.3, opacity: one.opacity, type: one.dash }, itemStyle: { color: one.colour }, emphasis: { disabled: true } });
}

function secondsTip(shownTrials) {
  return function (at) {
    if (!at.length) return "";
    var x = at[0].axisValue;
    var lines = shownTrials.map(function (one) {
      var series = one.trial.throughput, slow = one.trial.latency_ms_max;
      var i = series ? Math.max(0, Math.ceil(x / series.bucket_s) - 1) : -1;
      var j = slow ? Math.max(0, Math.ceil(x / slow.bucket_s) - 1) : -1;
      var rate = series && i < series.min.length ? (series.max.length ? shown(series.min[i]) + "–" + shown(series.max[i]) : shown(series.min[i])) : "–";
      var worst = slow && j < slow.min.length ? shownMs(most(slow)[j]) : "–";
      return { name: one.name, colour: one.colour, value: rate + "   " + worst };
    });
    return tip("second " + shown(Math.ceil(x)) + ": rate, slowest", lines);
  };
}

/* By percentile */
var PERCENTILES = [0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999];

function nines(percentile, done) {
  return percentile >= 100 ? Math.log10(Math.max(10, done)) : -Math.log10(1 - percentile / 100);
}

function latencyChart(holder) {
  var entry = chart(holder, latencyOption);
  compareEntries.push(entry);
  var names = [];
  findings.cases.forEach(function (found) {
    if (found.measures.length > 1) found.measures.forEach(function (m) { if (m.latency && names.indexOf(m.name) < 0) names.push(m.name); });
  });
  if (!names.length) return;
  var select = document.getElementById("measure");
  select.append(element("option", { value: "" }, ["main one of each case"]));
  names.forEach(function (name) { select.append(element("option", { value: name }, [name])); });
  select.parentNode.hidden = false;
  select.addEventListener("change", function () { chosenMeasure = select.value; redraw(entry); });
}

/** What a logarithmic axis can show: not what took under 1 us. The very fastest operation tells nothing, and would stretch the axis for all. */
function drawn(point) { return point[0] > 0 && point[1] > 0; }

function latencyOption(width) {
  var option = baseOption(), deepest = 2;
  option.series = [];
  chosen.forEach(function (id) {
    var found = caseById[id].measures.filter(function (m) { return m.latency && (chosenMeasure === "" || m.name === chosenMeasure); })[0];
    if (!found) return;
    var look = chosenLook(id);
    var data = found.latency.curve.filter(drawn).map(function (p) { return [nines(p[0], found.done), p[1] / 1000]; });
    data.forEach(function (p) { deepest = Math.max(deepest, p[0]); });
    option.series.push({ type: "line", name: label(id) + (chosenMeasure === "" && caseById[id].measures.length > 1 ? ", " + found.name : ""), data: data, showSymbol: false, step: false,
      lineStyle: { color: look.colour, width: 2, type: look.dash }, itemStyle: { color: look.colour }, emphasis: { disabled: true } });
  });
  var marks = PERCENTILES.map(function (p) { return nines(p, 10); }).filter(function (x) { return x <= deepest + 0.01; });
  option.grid = { left: 62, right: 22, top: 28, bottom: 48, outerBoundsMode: "none" };
  option.xAxis = bottomAxis({ min: 0, max: Math.ceil(deepest * 10) / 10, name: "percentile of operations", nameLocation: "middle", nameGap: 28,
    splitLine: { show: true, lineStyle: { color: variable("line") } }, axisTick: { show: true, customValues: marks, lineStyle: { color: variable("line-strong") } },
    axisLabel: { color: variable("muted"), fontSize: 11, customValues: marks, hideOverlap: true, formatter: percentileName } });
  option.yAxis = logAxis([].concat.apply([], option.series.map(function (s) { return s.data.map(function (p) { return p[1]; }); })), shownMs,
    { name: "latency, log scale", nameTextStyle: { color: variable("muted"), align: "left", padding: [0, 0, 0, -50] } });
  option.tooltip.trigger = "axis";
  option.tooltip.axisPointer = { lineStyle: { color: variable("line-strong") } };
  option.tooltip.formatter = function (at) {
    if (!at.length) return "";
    return tip("about p" + percentileName(at[0].axisValue), at.map(function (one) { return { name: one.seriesName, colour: one.color, value: shownMs(one.value[1]) }; }));
  };
  if (!option.series.length) option.title = { text: "No selected case has latencies", left: "center", top: 130, textStyle: { color: variable("muted"), fontWeight: 400, fontSize: 14 } };
  return { option: option, height: 360 };
}

/** Nines back to a percentile: 2 is 99, 3 is 99.9. */
function percentileName(x) {
  var percentile = 100 * (1 - Math.pow(10, -x));
  return String(Number(percentile.toFixed(Math.max(0, Math.ceil(x - 2 + 0.001) + (x % 1 > 0.01 && x > 1 ? 1 : 0)))));
}
