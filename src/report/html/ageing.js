/* A figure over an amount of ageing: a line for each group of cases, dashed for the control. */
function ageingChart(holder) {
  chart(holder, function () { return ageingOption(holder.dataset.figure, holder.dataset.axis); });
}

function ageingOption(figure, axis) {
  var lines = findings.ageing.filter(function (one) { return one.figure === figure && one.axis === axis; });
  var option = baseOption();
  option.grid = [{ left: 64, right: 16, top: 44, bottom: 44, outerBoundsMode: "none" }];
  option.xAxis = { type: "value", name: lines[0].amount, nameLocation: "middle", nameGap: 28, axisLabel: { color: variable("muted") }, splitLine: { show: false } };
  option.yAxis = { type: "value", min: 0, axisLabel: { color: variable("muted"), formatter: shown }, splitLine: { lineStyle: { color: variable("line") } } };
  option.legend = { top: 0, left: 0, type: "scroll", textStyle: { color: variable("text") }, data: lines.map(function (one) { return one.name; }) };
  option.tooltip.trigger = "item";
  option.tooltip.formatter = function (at) { return ageingTip(at.data); };
  option.series = [];
  lines.forEach(function (one) {
    var colour = ageingColour(one.name, axis);
    [["aged", "solid"], ["fresh", "dashed"]].forEach(function (kind) {
      var data = one.points.filter(function (point) { return point[kind[0]]; }).map(function (point) {
        return { value: [point.x, point[kind[0]].value], point: point, one: one, kind: kind[0], colour: colour };
      });
      if (data.length) option.series.push({ type: "line", name: one.name, data: data, symbolSize: 7, itemStyle: { color: colour }, lineStyle: { color: colour, type: kind[1], width: 2 } });
    });
  });
  return { option: option, height: 300 };
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
