/* Telemetry of the chosen cases: latencies and waits over time for each case, then a small chart for each quantity with a
   line for each case. One zoom and one pointer for all. */
var GROUP_TITLES = {
  throughput: "Throughput", latency: "Latency percentiles", device_flush_latency: "Device: mean flush latency", device_write_latency: "Device: mean write latency",
  device_read_latency: "Device: mean read latency", device_queue: "Device: queue depth", device_busy: "Device: busy", device_flushes: "Device: flushes", device_writes: "Device: writes",
  device_written: "Device: written", device_read: "Device: read", wal: "WAL", wal_syncs: "WAL syncs", wal_full_page_images: "Full-page images",
  buffers_written: "Buffers written", blocks_read: "Blocks read into shared_buffers", checkpoints: "Checkpoints", cpu: "CPU", pressure: "Pressure", memory_dirty: "Memory to be written", memory: "Memory"
};
var GROUPS = Object.keys(GROUP_TITLES);
/** Space beside the plot of a time chart. */
var TIME_LEFT = 52, TIME_RIGHT = 10;
/** Cases that one view can show: more lines cannot be told apart. */
var CASES_MAX = 4;
/** Dashes of the lines of one case. */
var DASHES = ["solid", [5, 3], [1.5, 2.5], [8, 3, 2, 3]];
var telemetryEntries = [];
var telemetryCases = [];
/** Lines that a click on a legend took away, by chart and name. */
var hiddenLines = {};

function telemetryStart() {
  if (!document.getElementById("telemetry")) return;
  var trialSelect = document.getElementById("telemetry-trial"), holder = document.querySelector('[data-chips="telemetry-cases"]');
  var ids = measuredCases.filter(function (id) { return findings.trials.some(function (t) { return t.case === id && t.telemetry.length; }); });
  if (!ids.length) {
    document.getElementById("telemetry-charts").replaceChildren(element("p", { "class": "none" }, ["No telemetry was recorded."]));
    return;
  }
  telemetryCases = [ids.indexOf(chosen[0]) >= 0 ? chosen[0] : ids[0]];
  trialNumbers.forEach(function (n) { trialSelect.append(element("option", { value: String(n) }, [String(n)])); });
  var show = function () {
    chips(holder, ids.map(function (id) {
      var pressed = telemetryCases.indexOf(id) >= 0;
      return { id: id, name: label(id), colour: pressed ? caseColour(id) : variable("line-strong"), pressed: pressed, hint: caseById[id].durability.class + ": " + caseById[id].durability.reason };
    }), function (item) {
      toggleIn(telemetryCases, item.id);
      if (!telemetryCases.length) telemetryCases.push(item.id);
      if (telemetryCases.length > CASES_MAX) telemetryCases.shift();
      show();
    });
    showTelemetry(findings.trials.filter(function (t) { return telemetryCases.indexOf(t.case) >= 0 && String(t.trial) === trialSelect.value; }));
  };
  trialSelect.addEventListener("change", show);
  trialSelect.parentNode.hidden = false;
  recolour.push(show);
  show();
}

/** Colour of a case in this view. */
function caseColour(id) { return lookAmong(id, telemetryCases).colour; }

function telemetryLength(trial) {
  var series = trial.telemetry.concat(trial.throughput ? [trial.throughput] : []);
  return Math.max.apply(null, [1].concat(series.map(function (s) { return s.min.length * s.bucket_s; })));
}

function showTelemetry(trials) {
  forgetTime(telemetryEntries);
  forget(telemetryEntries);
  telemetryEntries = [];
  trials.sort(function (a, b) { return telemetryCases.indexOf(a.case) - telemetryCases.indexOf(b.case); });
  var length = Math.max.apply(null, [1].concat(trials.map(telemetryLength)));
  var notes = trials.map(function (trial) {
    return element("p", { "class": "note" }, [label(trial.case) + ", trial " + trial.trial + (trial.rate === null ? "" : ": " + shown(trial.rate) + " operations a second")]);
  });
  var missing = telemetryCases.filter(function (id) { return !trials.some(function (t) { return t.case === id; }); });
  missing.forEach(function (id) { notes.push(element("p", { "class": "note" }, [label(id) + ": this trial was not measured"])); });
  var wide = element("div", { "class": "wide-charts" }), grid = element("div", { "class": "small-grid" }), made = [];
  trials.forEach(function (trial) {
    if (trial.heatmap) made.push(heatPanel(wide, trial, length));
    if (trial.waits) made.push(waitsPanel(wide, trial, length));
  });
  telemetryPanels(trials).forEach(function (panel) { made.push(linesPanel(grid, panel, length)); });
  document.getElementById("telemetry-charts").replaceChildren.apply(document.getElementById("telemetry-charts"), notes.concat([wide, grid]));
  made.forEach(function (one) {
    var entry = chart(one.holder, one.make);
    // On paper two small charts stand side by side, and a wide one alone.
    entry.small = !wide.contains(one.holder);
    telemetryEntries.push(entry);
    timeChart(entry, function () { return { left: TIME_LEFT, right: TIME_RIGHT, length: length }; }, one.hover);
  });
}

/** A chart with its heading, the value under the pointer, and its legend. */
function panelParts(place, title, unit, name) {
  var holder = element("div", { "class": "chart", role: "img", "aria-label": title + " of " + name + " over time" });
  var now = element("span", { "class": "now" }), legend = element("div", { "class": "chips legend" });
  place.append(element("div", { "class": "small" }, [element("h4", {}, [title + " ", element("span", { "class": "unit" }, [unit]), now]), holder, legend]));
  return { holder: holder, now: now, legend: legend };
}

function heatPanel(place, trial, length) {
  var parts = panelParts(place, "Latency of all operations", label(trial.case), label(trial.case));
  parts.legend.append(heatLegend(trial.heatmap), parts.now);
  return { holder: parts.holder, make: function () { return heatmapOption(trial, length); },
    hover: function (second) { parts.now.textContent = second === null ? "" : moment(second) + ": " + heatWords(trial.heatmap, second); } };
}

function moment(second) { return "second " + Math.max(1, Math.ceil(second)); }

/** One panel for each quantity of the chosen trials: lines as {name, of, series, colour, dash}, and their names once. */
function telemetryPanels(trials) {
  var several = trials.length > 1, panels = [];
  trials.forEach(function (trial) {
    var throughput = trial.throughput ? [Object.assign({}, trial.throughput, { group: "throughput" })] : [];
    throughput.concat(trial.telemetry).forEach(function (series) {
      var panel = panels.find(function (one) { return one.key === series.group && one.unit === series.unit; });
      if (!panel) {
        panel = { key: series.group, title: GROUP_TITLES[series.group] || series.group, unit: series.unit, lines: [], names: [], trials: trials, log: series.group === "latency" };
        panels.push(panel);
      }
      var name = series.title.replace(/: [^:]*$/, "");
      if (panel.names.indexOf(name) < 0) panel.names.push(name);
      var nth = panel.names.indexOf(name);
      panel.lines.push({ name: name, of: trial, series: series, dash: DASHES[(several ? nth : nth > 3 ? 1 : 0) % 4],
        colour: function () { return several ? caseColour(trial.case) : variable("c" + (1 + nth % 8)); } });
    });
  });
  var place = function (panel) { var at = GROUPS.indexOf(panel.key); return at < 0 ? GROUPS.length : at; };
  return panels.sort(function (a, b) { return place(a) - place(b); });
}

/** The values of some lines at a second, each in the colour of its case where there are several. */
function valuesAt(panel, lines, second) {
  if (second === null) return [];
  return lines.map(function (line) {
    var value = element("span", { "class": "value" }, [valueWords(line.series, second)]);
    if (panel.trials.length > 1) value.style.color = line.colour();
    return value;
  });
}

function linesPanel(place, panel, length) {
  var parts = panelParts(place, panel.title, panel.unit, panel.trials.map(function (t) { return label(t.case); }).join(", "));
  var alone = panel.names.length === 1, values = [];
  var isHidden = function (name) { return hiddenLines[panel.key + "\n" + name] === true; };
  var named = function (name) { return panel.lines.filter(function (line) { return line.name === name; }); };
  (alone ? [] : panel.names).forEach(function (name) {
    var line = named(name)[0], value = element("span", { "class": "now" });
    var swatch = element("span", { "class": "swatch" + (line.dash === "solid" ? "" : " dashed"), "aria-hidden": "true" });
    swatch.style.borderTopColor = panel.trials.length > 1 ? variable("muted") : line.colour();
    // Room for the values, so that nothing moves when they come.
    value.style.minWidth = panel.trials.length * 3.3 + "rem";
    var button = element("button", { type: "button", "aria-pressed": String(!isHidden(name)), title: "Hide or show " + name }, [swatch, name, value]);
    button.addEventListener("click", function () {
      hiddenLines[panel.key + "\n" + name] = !isHidden(name);
      button.setAttribute("aria-pressed", String(!isHidden(name)));
      charts.forEach(function (entry) { if (entry.holder === parts.holder) redraw(entry); });
    });
    values.push({ name: name, value: value });
    parts.legend.append(button);
  });
  return { holder: parts.holder,
    make: function () { return linesOption(panel, panel.lines.filter(function (line) { return alone || !isHidden(line.name); }), length); },
    hover: function (second) {
      parts.now.replaceChildren.apply(parts.now, second === null ? [] : [moment(second)].concat(alone ? valuesAt(panel, panel.lines, second) : []));
      values.forEach(function (one) { one.value.replaceChildren.apply(one.value, valuesAt(panel, named(one.name), second)); });
    } };
}

/** The value of a series at a second: one number, or the least and the most where seconds were merged. */
function valueWords(series, second) {
  var at = bucketAt(second, series.bucket_s), low = series.min[at], high = most(series)[at];
  return series.max.length ? shown(low) + "–" + shown(high) : shown(low);
}

/** Least and most of what is in view, above 0. */
function extremes(lines, length) {
  var ends = [];
  lines.forEach(function (line) {
    pointsInView(line.series, most(line.series), length).concat(pointsInView(line.series, line.series.min, length)).forEach(function (point) {
      var value = (point.value || point)[1];
      if (value > 0 && (ends.length === 0 || value < ends[0])) ends[0] = value;
      if (value > 0 && (ends.length < 2 || value > ends[1])) ends[1] = value;
    });
  });
  return ends;
}

function linesOption(panel, lines, length) {
  var option = baseOption(), size = { color: variable("muted"), fontSize: 10, formatter: shown }, ends = extremes(lines, length);
  option.tooltip = { show: false };
  option.grid = { left: TIME_LEFT, right: TIME_RIGHT, top: 8, bottom: 22, outerBoundsMode: "none" };
  option.xAxis = timeAxis(length, 4, 10);
  option.yAxis = axis({ min: 0, splitNumber: 3, axisLabel: size });
  if (panel.log && ends.length) option.yAxis = logAxis(ends, shown, {});
  if (panel.unit === "%" && ends[1] > 60 && ends[1] <= 101) Object.assign(option.yAxis, { max: 100, interval: 25 });
  option.series = [];
  lines.forEach(function (line, i) {
    var series = line.series, colour = line.colour();
    var above = function (value) { return panel.log && !(value > 0) ? null : value; };
    var base = { type: "line", symbol: "none", silent: true, lineStyle: { color: colour, width: 1.4, type: line.dash }, itemStyle: { color: colour }, emphasis: { disabled: true } };
    if (series.max.length && !panel.log) {
      base.lineStyle = { color: colour, width: 0.7 };
      var spread = series.max.map(function (high, k) { return high === null ? null : high - series.min[k]; });
      option.series.push(Object.assign({}, base, { data: pointsInView(series, series.min, length), stack: "s" + i, stackStrategy: "all" }));
      option.series.push(Object.assign({}, base, { data: pointsInView(series, spread, length), stack: "s" + i, stackStrategy: "all", areaStyle: { color: colour, opacity: 0.25 } }));
    } else {
      option.series.push(Object.assign({}, base, { data: pointsInView(series, most(series).map(above), length) }));
    }
  });
  panel.trials.forEach(function (trial) {
    var several = panel.trials.length > 1, marks = checkpointMarks(trial, length, several ? caseColour(trial.case) : variable("muted"), {});
    // Tints of several cases hide each other.
    if (several) delete marks.markArea;
    option.series.push(marks);
  });
  return { option: option, height: 150 };
}
