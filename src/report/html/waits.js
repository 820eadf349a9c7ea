/* Wait events of the backends: one bar for each case, the same event in the same colour everywhere. */
var WAIT_COLOURS = { IO: ["io1", "io2", "io3", "io4"], CPU: ["cpu1", "cpu2"], LWLock: ["lw1", "lw2"], Lock: ["lock1", "lock2"], Client: ["cl1", "cl2"], Unreported: ["c5"] };
/** Locks behind which a backend waits for another one's I/O: storage, as in the shares (`STORAGE_LOCKS` in backend_time.rs). */
var STORAGE_WAITS = ["WALWrite", "WALWriteLock", "BufferIO", "BufferIo", "buffer_io", "WALSync"];
/** Most events that get a part of their own. */
var WAITS_SHOWN = 9;

/** What a wait is called, and the kind that its colour tells. */
function waitEvent(wait) {
  var name = wait.class === wait.event ? wait.event : wait.event + " (" + wait.class + ")";
  return { key: wait.class + " " + wait.event, cls: wait.class, event: wait.event, total: 0,
    kind: STORAGE_WAITS.indexOf(wait.event) < 0 ? wait.class : "IO", name: wait.class === "CPU" ? "CPU or not reported" : wait.class === "Unreported" ? wait.event : name };
}

function waitEvents() {
  var events = {};
  findings.cases.forEach(function (found) {
    ((found.backend_time || {}).waits || []).forEach(function (wait) {
      var event = waitEvent(wait);
      events[event.key] = events[event.key] || event;
      events[event.key].total += wait.share;
    });
  });
  var sorted = Object.keys(events).map(function (key) { return events[key]; }).sort(function (a, b) { return b.total - a.total; }).slice(0, WAITS_SHOWN);
  var used = {};
  sorted.forEach(function (event) {
    var colours = WAIT_COLOURS[event.kind] || ["c5", "c6", "c7"];
    var nth = used[event.kind] = (used[event.kind] === undefined ? 0 : used[event.kind] + 1);
    event.colour = colours[nth % colours.length];
  });
  var order = ["IO", "Lock", "LWLock", "Unreported", "CPU", "Client"];
  sorted.sort(function (a, b) { return (order.indexOf(a.kind) + 10) % 16 - (order.indexOf(b.kind) + 10) % 16 || b.total - a.total; });
  return sorted;
}

function waitsChart(holder) {
  var events = waitEvents();
  var cases = findings.cases.filter(function (found) { return found.backend_time && found.backend_time.waits.length; });
  chart(holder, function (width) { return waitsOption(events, cases, width); });
  var legend = document.querySelector('[data-chips="waits"]');
  var show = function () {
    legend.replaceChildren.apply(legend, events.concat([{ name: "other", colour: "line-strong" }]).map(function (event) {
      var swatch = element("span", { "class": "swatch block" });
      swatch.style.background = variable(event.colour);
      return element("span", {}, [swatch, event.name]);
    }));
  };
  recolour.push(show);
  show();
}

function waitShare(found, event) {
  return found.backend_time.waits.filter(function (w) { return w.class === event.cls && w.event === event.event; }).reduce(function (sum, w) { return sum + w.share; }, 0);
}

function waitsOption(events, cases, width) {
  var names = cases.map(function (found) { return label(found.id); });
  var nameWidth = Math.ceil(Math.max.apply(null, names.map(function (n) { return textWidth(n, 12); })));
  var narrow = nameWidth > width * 0.36;
  var rowHeight = narrow ? 44 : 28, left = narrow ? 14 : nameWidth + 18;
  var option = baseOption();
  option.grid = { left: left, right: 20, top: 4, height: cases.length * rowHeight, outerBoundsMode: "none" };
  option.xAxis = bottomAxis({ min: 0, max: 1, axisLabel: { color: variable("muted"), fontSize: 11, formatter: function (v) { return Math.round(v * 100) + " %"; } }, name: "share of backend samples", nameLocation: "middle", nameGap: 26 });
  option.yAxis = { type: "category", inverse: true, data: names, axisLine: { show: false }, axisTick: { show: false }, z: 10,
    axisLabel: narrow
      ? { inside: true, margin: 0, align: "left", verticalAlign: "bottom", padding: [0, 0, 12, 0], color: variable("text"), fontSize: 12, interval: 0 }
      : { color: variable("text"), fontSize: 12, margin: 10, interval: 0 } };
  option.tooltip.trigger = "axis";
  option.tooltip.axisPointer = { type: "none" };
  option.tooltip.formatter = function (at) { return waitsTip(cases[at[0].dataIndex]); };
  var bar = function (name, colour, shares) {
    return { type: "bar", stack: "waits", name: name, barWidth: narrow ? 16 : 18, itemStyle: { color: variable(colour), borderColor: variable("bg"), borderWidth: 0.5 }, emphasis: { disabled: true },
      data: shares.map(function (share) { return { value: share, label: waitLabel(name, share, (width - left - 20) * share, variable(colour)) }; }),
      barCategoryGap: narrow ? "60%" : "30%", z: 3 };
  };
  option.series = events.map(function (event) { return bar(event.name, event.colour, cases.map(function (found) { return waitShare(found, event); })); });
  option.series.push(bar("other", "line-strong", cases.map(function (found) {
    var named = events.reduce(function (sum, event) { return sum + waitShare(found, event); }, 0);
    var all = found.backend_time.waits.reduce(function (sum, wait) { return sum + wait.share; }, 0);
    return Math.max(0, all - named);
  })));
  if (narrow) option.series.forEach(function (series) { series.barGap = "0%"; });
  return { option: option, height: cases.length * rowHeight + 52 };
}

/** The event's name and share inside its part, where there is room. */
function waitLabel(name, share, room, colour) {
  var short = name.replace(/ \(.*\)$/, ""), value = Math.round(share * 100) + " %";
  var text = [short + " " + value, value].find(function (t) { return textWidth(t, 11) + 10 < room; });
  return { show: text !== undefined && share > 0.02, formatter: function () { return text; }, fontSize: 11, color: contrast(colour), position: "inside" };
}

/** Black or white, whichever reads better on `colour` (relative luminance as WCAG 2 has it). */
function contrast(colour) {
  var light = [1, 3, 5].map(function (at) {
    var v = parseInt(colour.substr(at, 2), 16) / 255;
    return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
  });
  return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.22 ? "#111111" : "#ffffff";
}

function waitsTip(found) {
  return tip(label(found.id), found.backend_time.waits.map(function (wait) {
    return { name: waitEvent(wait).name, value: (wait.share * 100).toFixed(1) + " %" };
  }));
}

/** The waits of one trial over time: backends by what they were doing, stacked. Its colours are those of all waits. */
function waitsPanel(place, trial, length) {
  var parts = panelParts(place, "Wait events of the backends", "backends, " + label(trial.case), label(trial.case));
  var events = trialWaits(trial), hidden = {}, values = [];
  events.forEach(function (event) {
    var swatch = element("span", { "class": "swatch block", "aria-hidden": "true" }), value = element("span", { "class": "now" });
    swatch.style.background = variable(event.colour);
    value.style.minWidth = "2.4rem";
    var button = element("button", { type: "button", "aria-pressed": "true", title: "Hide or show this wait" }, [swatch, event.name, value]);
    button.addEventListener("click", function () {
      hidden[event.key] = !hidden[event.key];
      button.setAttribute("aria-pressed", String(!hidden[event.key]));
      charts.forEach(function (entry) { if (entry.holder === parts.holder) redraw(entry); });
    });
    values.push({ event: event, value: value });
    parts.legend.append(button);
  });
  var shownEvents = function () { return events.filter(function (event) { return !hidden[event.key]; }); };
  return { holder: parts.holder, make: function () { return waitsOverTimeOption(trial, shownEvents(), length); },
    hover: function (second) {
      parts.now.textContent = second === null ? "" : moment(second);
      values.forEach(function (one) { one.value.textContent = second === null ? "" : shown(one.event.backends[bucketAt(second, trial.waits.bucket_s)]); });
    } };
}

/** The waits of a trial in the order and colours of the bars; those that have no colour there get the next of their class. */
function trialWaits(trial) {
  var known = waitEvents(), order = ["IO", "LWLock", "Lock", "CPU"], used = {};
  known.forEach(function (event) { used[event.kind] = (used[event.kind] || 0) + 1; });
  var events = trial.waits.waits.map(function (wait) {
    var event = waitEvent(wait), same = known.find(function (one) { return one.key === event.key; });
    var colours = WAIT_COLOURS[event.kind] || ["c5", "c6", "c7"];
    if (!same) used[event.kind] = (used[event.kind] || 0) + 1;
    return Object.assign(event, { colour: same ? same.colour : colours[(used[event.kind] - 1) % colours.length], backends: wait.backends });
  });
  var rank = function (event) { var at = order.indexOf(event.kind); return at < 0 ? order.length : at; };
  events.sort(function (a, b) { return rank(a) - rank(b); });
  if (trial.waits.others.some(function (value) { return value > 0; })) events.push({ key: "other", kind: "", name: "other", colour: "line-strong", backends: trial.waits.others });
  return events;
}

function waitsOverTimeOption(trial, events, length) {
  var option = baseOption();
  option.tooltip = { show: false };
  option.grid = { left: TIME_LEFT, right: TIME_RIGHT, top: 8, bottom: 22, outerBoundsMode: "none" };
  option.xAxis = timeAxis(length, 6, 10);
  option.yAxis = axis({ min: 0, splitNumber: 3, axisLabel: { color: variable("muted"), fontSize: 10, formatter: shown } });
  option.series = events.map(function (event) {
    var series = { bucket_s: trial.waits.bucket_s };
    return { type: "line", stack: "waits", symbol: "none", silent: true, data: pointsInView(series, event.backends, length), lineStyle: { width: 0 }, itemStyle: { color: variable(event.colour) },
      areaStyle: { color: variable(event.colour), opacity: 1 }, emphasis: { disabled: true } };
  });
  option.series.push(checkpointMarks(trial, length, variable("text"), {}));
  return { option: option, height: 200 };
}
