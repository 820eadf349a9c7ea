/* Rates over the number of clients: a line for each stack (and whatever else differs), whiskers at every point. */
function clientsChart(holder) {
  var lines = clientLines(holder.dataset);
  var state = { lines: lines, hidden: {}, log: clientsWantLog(lines) };
  var entry = chart(holder, function (width) { return clientsOption(state, holder.dataset.unit, width); });
  var holderOfChips = document.querySelector('.chips[data-for="' + holder.id + '"]');
  var button = holderOfChips.parentNode.querySelector(".scale");
  button.hidden = false;
  var show = function () {
    button.textContent = state.log ? "Linear scale" : "Log scale";
    chips(holderOfChips, lines.map(function (line) {
      return { id: line.name, name: line.name, colour: lineColour(line), dashed: line.weak, pressed: !state.hidden[line.name], hint: line.weak ? "volatile: " + CLASS_WORDS.volatile : "" };
    }), function (item) {
      state.hidden[item.id] = !state.hidden[item.id];
      show();
      redraw(entry);
    });
  };
  button.addEventListener("click", function () { state.log = !state.log; show(); redraw(entry); });
  recolour.push(show);
  show();
}

function lineColour(line) { return mixed(variable(line.colour), [0, -0.4, 0.35, -0.6][line.shade % 4]); }

/** Lines of one workload, measure and unit: cases that differ in their number of clients alone. */
function clientLines(of) {
  var lines = [];
  findings.rankings.forEach(function (ranking) {
    if (ranking.workload !== of.workload || ranking.measure !== of.measure || ranking.unit !== of.unit) return;
    ranking.classes.forEach(function (block) {
      block.rows.forEach(function (row) {
        var found = caseById[row.case];
        if (!found || found.axes.clients === undefined) return;
        var name = lineName(found.axes);
        var line = lines.find(function (one) { return one.name === name; });
        if (!line) {
          line = { name: name, weak: block.class === "volatile", colour: colourName(row.case), symbol: symbolOf(row.case), points: [] };
          line.shade = lines.filter(function (one) { return one.colour === line.colour; }).length;
          lines.push(line);
        }
        line.points.push({ clients: Number(found.axes.clients), rate: row.rate });
      });
    });
  });
  lines.forEach(function (line) { line.points.sort(function (a, b) { return a.clients - b.clients; }); });
  lines.sort(function (a, b) { return Number(a.weak) - Number(b.weak); });
  return lines;
}

function lineName(axes) {
  var others = Object.keys(axes).filter(function (key) {
    return key !== "clients" && key !== "workload" && key !== "stack" && findings.cases.some(function (c) { return c.axes[key] !== axes[key]; });
  });
  return [axes.stack || ""].concat(others.map(function (key) { return key + " " + axes[key]; })).filter(Boolean).join(", ");
}

/** A linear scale hides what differs below a volatile line that is several times as high. */
function clientsWantLog(lines) {
  var most = function (weak) {
    return Math.max.apply(null, [0].concat.apply([0], lines.filter(function (l) { return l.weak === weak; }).map(function (l) { return l.points.map(function (p) { return p.rate.value; }); })));
  };
  return most(true) > 3 * most(false) && most(false) > 0;
}

function clientsOption(state, unit, width) {
  var steps = [];
  state.lines.forEach(function (line) { line.points.forEach(function (p) { if (steps.indexOf(p.clients) < 0) steps.push(p.clients); }); });
  steps.sort(function (a, b) { return a - b; });
  var seen = state.lines.filter(function (line) { return !state.hidden[line.name]; });
  var dodge = Math.min(12, width / steps.length / (seen.length + 2));
  var option = baseOption();
  var plot = width - 76;
  option.grid = { left: 60, right: 16, top: 28, bottom: 48, outerBoundsMode: "none" };
  option.xAxis = bottomAxis({ min: -0.5, max: steps.length - 0.5, name: "clients", nameLocation: "middle", nameGap: 28,
    axisTick: { show: true, customValues: steps.map(function (_, i) { return i; }), lineStyle: { color: variable("line-strong") } },
    axisLabel: { color: variable("muted"), fontSize: 12, customValues: steps.map(function (_, i) { return i; }), formatter: function (i) { return String(steps[Math.round(i)]); } } });
  option.yAxis = state.log ? logAxis(clientsValues(seen), shown, { name: unit + ", log scale" }) : clientsAxis(seen, unit);
  option.yAxis.nameTextStyle = { color: variable("muted"), align: "left", padding: [0, 0, 0, -44] };
  option.tooltip.trigger = "item";
  option.tooltip.formatter = function (at) { return clientsTip(steps, unit, at); };
  option.series = [];
  seen.forEach(function (line, i) {
    var shift = (i - (seen.length - 1) / 2) * dodge * steps.length / plot;
    var colour = lineColour(line);
    var data = line.points.map(function (p) { return { value: [steps.indexOf(p.clients) + shift, p.rate.value, p.rate.low, p.rate.high], line: line, point: p, colour: colour }; });
    option.series.push({ type: "line", name: line.name, data: data, symbol: line.weak ? "circle" : line.symbol, symbolSize: 8, z: 4,
      lineStyle: { color: colour, width: 2, type: line.weak ? "dashed" : "solid" },
      itemStyle: { color: line.weak ? variable("bg") : colour, borderColor: colour, borderWidth: line.weak ? 2 : 0 } });
    option.series.push({ type: "custom", silent: true, z: 3, clip: true, data: data.filter(function (d) { return d.value[2] !== null; }), encode: { x: 0, y: [1, 2, 3] },
      tooltip: { show: false }, renderItem: function (at, api) { return whisker(api, colour); } });
  });
  return { option: option, height: 360 };
}

function ratesOf(lines) {
  return [].concat.apply([], lines.map(function (line) { return line.points.map(function (p) { return p.rate; }); }));
}

/** A linear axis that fits the points, and the whiskers as far as these are no longer than the points are high. */
function clientsAxis(lines, unit) {
  var top = scaleTop(ratesOf(lines)), step = roundStep(top, 6);
  return axis({ name: unit, min: 0, max: Math.max(step, Math.ceil(top / step) * step), interval: step });
}

/** Every point and whisker end for a logarithmic scale; of a whisker no more than a power of ten beyond all points. */
function clientsValues(lines) {
  var rates = ratesOf(lines), values = rates.map(function (rate) { return rate.value; });
  var least = Math.min.apply(null, values) / 10, most = 10 * Math.max.apply(null, values);
  var ends = rates.filter(function (rate) { return rate.low !== null; }).map(function (rate) { return [Math.max(rate.low, least), Math.min(rate.high, most)]; });
  return values.concat.apply(values, ends);
}

function whisker(api, colour) {
  var low = api.coord([api.value(0), api.value(2)]), high = api.coord([api.value(0), api.value(3)]);
  var style = { stroke: colour, lineWidth: 1.6 };
  return { type: "group", children: [
    { type: "line", shape: { x1: low[0], y1: low[1], x2: high[0], y2: high[1] }, style: style },
    { type: "line", shape: { x1: low[0] - 4, y1: low[1], x2: low[0] + 4, y2: low[1] }, style: style },
    { type: "line", shape: { x1: low[0] - 4, y1: high[1], x2: low[0] + 4, y2: high[1] }, style: style }
  ] };
}

function clientsTip(steps, unit, at) {
  var point = at.data.point, rate = point.rate;
  var lines = [{ name: unit, value: shown(rate.value), colour: at.data.colour }];
  if (rate.low !== null) lines.push({ name: "95 % interval", value: shownInterval(rate) });
  return tip(at.data.line.name + ", " + point.clients + (point.clients === 1 ? " client" : " clients"), lines);
}
