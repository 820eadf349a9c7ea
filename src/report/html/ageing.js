/* A figure over an amount of ageing: a line for each group of cases, dashed for the control, whiskers at every point. */
function ageingChart(holder) {
  chart(holder, function () { return ageingOption(holder.dataset.figure, holder.dataset.axis); });
}

function ageingOption(figure, axis) {
  var lines = findings.ageing.filter(function (one) { return one.figure === figure && one.axis === axis; });
  var option = baseOption();
  option.grid = [{ left: 64, right: 16, top: 44, bottom: 44, outerBoundsMode: "none" }];
  option.xAxis = amountAxis(lines);
  option.yAxis = ageingAxis(lines);
  option.legend = { top: 0, left: 0, type: "scroll", textStyle: { color: variable("text") }, data: lines.map(function (one) { return one.name; }) };
  option.tooltip.trigger = "item";
  option.tooltip.formatter = function (at) { return ageingTip(at.data); };
  option.series = [];
  lines.forEach(function (one) {
    var colour = ageingColour(one.name, axis);
    [["aged", "solid"], ["fresh", "dashed"]].forEach(function (kind) {
      var data = one.points.filter(function (point) { return point[kind[0]]; }).map(function (point) {
        var found = point[kind[0]];
        return { value: [point.x, found.value, found.low, found.high], point: point, one: one, kind: kind[0], colour: colour };
      });
      if (!data.length) return;
      option.series.push({ type: "line", name: one.name, data: data, symbolSize: 7, z: 4, itemStyle: { color: colour }, lineStyle: { color: colour, type: kind[1], width: 2 } });
      option.series.push({ type: "custom", name: one.name, silent: true, z: 3, clip: true, data: data.filter(function (d) { return d.value[2] !== null; }), encode: { x: 0, y: [1, 2, 3] },
        tooltip: { show: false }, itemStyle: { color: colour }, renderItem: function (at, api) { return whisker(api, colour); } });
    });
  });
  return { option: option, height: 300 };
}

/* The amounts that were measured, with room beside the first and the last for their whiskers. */
function amountAxis(lines) {
  var all = [].concat.apply([], lines.map(function (one) { return one.points.map(function (point) { return point.x; }); }));
  var amounts = all.filter(function (x, at) { return all.indexOf(x) === at; }).sort(function (a, b) { return a - b; });
  var first = amounts[0], last = amounts[amounts.length - 1], beside = 0.01 * (last - first) || 1;
  return bottomAxis({ min: first - beside, max: last + beside, name: lines[0].amount, nameLocation: "middle", nameGap: 28,
    axisTick: { show: true, customValues: amounts, lineStyle: { color: variable("line-strong") } },
    axisLabel: { color: variable("muted"), fontSize: 12, hideOverlap: true, customValues: amounts } });
}

/* From 0, but for a quotient, of which what it is beyond 1 counts. A whisker that would squeeze the figures leaves the chart. */
function ageingAxis(lines) {
  var found = [].concat.apply([], lines.map(function (one) {
    return [].concat.apply([], one.points.map(function (point) { return [point.aged, point.fresh]; }));
  })).filter(Boolean);
  var top = scaleTop(found), bottom = 0;
  if (lines[0].figure.indexOf(" / ") >= 0) {
    var values = Math.min.apply(null, found.map(function (one) { return one.value; }));
    var ends = Math.min.apply(null, found.map(function (one) { return one.low === null ? one.value : one.low; }));
    bottom = Math.max(0.98 * Math.min(values, ends), values / 2.2);
  }
  var step = roundStep(top - bottom, 6), low = Math.floor(bottom / step) * step;
  return axis({ min: low, max: Math.max(low + step, Math.ceil(top / step) * step), interval: step });
}

/* The same for the same cases in every chart of an axis. */
function ageingColour(group, axis) {
  var groups = findings.ageing.filter(function (one) { return one.axis === axis; }).map(function (one) { return one.name; });
  var place = groups.filter(function (name, at) { return groups.indexOf(name) === at; }).indexOf(group);
  var stacks = findings.cases.map(function (found) { return colourName(found.id); });
  var names = stacks.filter(function (name, at) { return stacks.indexOf(name) === at; });
  return mixed(variable(names[place % names.length]), [0, -0.4, 0.35, -0.6][Math.floor(place / names.length) % 4]);
}

function ageingTip(data) {
  var found = data.point[data.kind];
  var rows = [{ name: data.kind, value: shown(found.value) + (found.low === null ? "" : " (" + shown(found.low) + " to " + shown(found.high) + ")"), colour: data.colour }];
  if (data.point.ratio) rows.push({ name: "aged / fresh", value: shown(data.point.ratio.value) });
  return tip(data.one.name + ", " + data.one.amount + ": " + data.point.x, rows);
}
