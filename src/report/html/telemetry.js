/* Telemetry of one chosen trial: small charts by group, one for each unit, with one pointer over all of them. */
var GROUPS = ["client", "postgres", "device", "cpu", "pressure", "memory"];
var GROUP_TITLES = { client: "Client", postgres: "PostgreSQL", device: "Devices", cpu: "CPU", pressure: "Pressure", memory: "Memory" };
/** Most lines in one small chart. */
var LINES_MAX = 6;
/** Most bands from least to most in one small chart. */
var BANDS_MAX = 3;
var telemetryEntries = [];

function telemetryStart() {
  if (!document.getElementById("telemetry")) return;
  var caseSelect = document.getElementById("telemetry-case"), trialSelect = document.getElementById("telemetry-trial");
  var ids = measuredCases.filter(function (id) { return findings.trials.some(function (t) { return t.case === id && t.telemetry.length; }); });
  if (!ids.length) {
    document.getElementById("telemetry-charts").replaceChildren(element("p", { "class": "none" }, ["No telemetry was recorded."]));
    return;
  }
  ids.forEach(function (id) { caseSelect.append(element("option", { value: id }, [label(id)])); });
  caseSelect.value = ids.indexOf(chosen[0]) >= 0 ? chosen[0] : ids[0];
  var listTrials = function () {
    trialSelect.replaceChildren.apply(trialSelect, findings.trials.filter(function (t) { return t.case === caseSelect.value; }).map(function (t) {
      return element("option", { value: String(t.trial) }, [String(t.trial)]);
    }));
  };
  var show = function () {
    showTelemetry(findings.trials.find(function (t) { return t.case === caseSelect.value && String(t.trial) === trialSelect.value; }));
  };
  caseSelect.addEventListener("change", function () { listTrials(); show(); });
  trialSelect.addEventListener("change", show);
  caseSelect.parentNode.hidden = trialSelect.parentNode.hidden = false;
  recolour.push(show);
  listTrials();
  show();
}

function showTelemetry(trial) {
  forget(telemetryEntries);
  telemetryEntries = [];
  var parts = [element("p", { "class": "note" }, [label(trial.case) + ", trial " + trial.trial + (trial.rate === null ? "" : ": " + shown(trial.rate) + " operations a second") + ". Second by second, from the start of the measurement."])];
  var holders = [];
  var grid = element("div", { "class": "small-grid" });
  telemetryGroups(trial).forEach(function (group) {
    group.charts.forEach(function (one) {
      var holder = element("div", { "class": "chart", role: "img", "aria-label": one.title + " of " + label(trial.case) + ", trial " + trial.trial });
      var legend = element("div", { "class": "chips legend" }, one.series.length < 2 ? [] : one.series.map(function (series, i) {
        var swatch = element("span", { "class": "swatch" + (i > 3 ? " dashed" : "") });
        swatch.style.borderTopColor = telemetryColour(i);
        return element("span", {}, [swatch, series.title]);
      }));
      grid.append(element("div", { "class": "small" }, [element("h4", {}, [one.title + " ", element("span", {}, [one.unit])]), holder, legend]));
      holders.push({ holder: holder, one: one });
    });
  });
  parts.push(grid);
  var place = document.getElementById("telemetry-charts");
  place.replaceChildren.apply(place, parts);
  holders.forEach(function (made) {
    var entry = chart(made.holder, function () { return telemetryOption(made.one); });
    entry.small = true;
    entry.group = "telemetry";
    telemetryEntries.push(entry);
  });
  echarts.connect("telemetry");
}

/** Series by group, then by unit, few enough for one chart. */
function telemetryGroups(trial) {
  var names = GROUPS.concat(trial.telemetry.map(function (s) { return s.group; }).filter(function (g, i, all) { return GROUPS.indexOf(g) < 0 && all.indexOf(g) === i; }));
  return names.map(function (name) {
    var units = [], made = [];
    var series = trial.telemetry.filter(function (s) { return s.group === name; });
    series.forEach(function (s) { if (units.indexOf(s.unit) < 0) units.push(s.unit); });
    units.forEach(function (unit) {
      var alike = series.filter(function (s) { return s.unit === unit; });
      var few = alike.some(function (s) { return s.max.length; }) ? BANDS_MAX : LINES_MAX;
      for (var i = 0; i < alike.length; i += few) {
        var part = alike.slice(i, i + few);
        made.push({ title: (GROUP_TITLES[name] || name) + (part.length === 1 ? ": " + part[0].title : ""), unit: unit, series: part, trial: trial });
      }
    });
    return { charts: made };
  }).filter(function (group) { return group.charts.length; });
}

function telemetryColour(i) { return variable("c" + (1 + i % 8)); }

function highest(one) {
  return Math.max.apply(null, one.series.map(function (series) { return most(series).reduce(function (a, b) { return Math.max(a, b); }, 0); }));
}

function telemetryOption(one) {
  var option = baseOption();
  var length = Math.max.apply(null, one.series.map(function (s) { return s.min.length * s.bucket_s; }));
  option.grid = { left: 46, right: 10, top: 8, bottom: 22, outerBoundsMode: "none" };
  option.xAxis = bottomAxis(Object.assign({ min: 0, max: length }, spanMarks(length, 4, 10)));
  option.yAxis = axis({ min: function (at) { return at.min >= 0 ? 0 : null; }, splitNumber: 3, axisLabel: { color: variable("muted"), fontSize: 10, formatter: shown } });
  if (one.unit === "%" && highest(one) > 60 && highest(one) <= 100) Object.assign(option.yAxis, { max: 100, interval: 25 });
  option.tooltip.trigger = "axis";
  option.tooltip.axisPointer = { lineStyle: { color: variable("line-strong") } };
  option.tooltip.formatter = function (at) {
    if (!at.length) return "";
    return tip(shownSpan(at[0].axisValue), one.series.map(function (series, i) {
      var bucket = Math.max(0, Math.ceil(at[0].axisValue / series.bucket_s) - 1);
      var low = series.min[bucket], high = most(series)[bucket];
      return { name: series.title, colour: telemetryColour(i), value: (series.max.length ? shown(low) + "–" + shown(high) : shown(low)) + " " + one.unit };
    }));
  };
  option.series = [];
  one.series.forEach(function (series, i) {
    var line = { type: "line", symbol: "none", lineStyle: { color: telemetryColour(i), width: 1.4, type: i > 3 ? "dashed" : "solid" }, itemStyle: { color: telemetryColour(i) }, emphasis: { disabled: true } };
    if (series.max.length) {
      line.lineStyle = { color: telemetryColour(i), width: 0.7 };
      var spread = series.max.map(function (high, k) { return high === null ? null : high - series.min[k]; });
      option.series.push(Object.assign({}, line, { data: points(series, series.min), stack: "s" + i, stackStrategy: "all" }));
      option.series.push(Object.assign({}, line, { data: points(series, spread), stack: "s" + i, stackStrategy: "all", areaStyle: { color: telemetryColour(i), opacity: 0.25 } }));
    } else {
      option.series.push(Object.assign({}, line, { data: points(series, series.min) }));
    }
  });
  option.series.push(checkpointBands(one.trial, length, variable("muted"), {}));
  return { option: option, height: 150 };
}
