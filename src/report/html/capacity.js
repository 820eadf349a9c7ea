/* The steps of capacity searches: 99th percentile and late share over the rate, a dot for each step. */
function capacityChart(holder) {
  chart(holder, function (width) { return capacityOption(width); });
}

function capacityCases() { return findings.cases.filter(function (found) { return found.capacity; }); }

function capacityOption(width) {
  var cases = capacityCases(), steps = [].concat.apply([], cases.map(function (found) { return found.capacity.steps; }));
  var rates = steps.map(function (step) { return step.rate; });
  var limits = cases.map(function (found) { return found.capacity.limit_us / 1000; }).filter(function (limit, i, all) { return all.indexOf(limit) === i; });
  var times = steps.filter(function (step) { return step.p99_us; }).map(function (step) { return step.p99_us / 1000; }).concat(limits);
  var shares = steps.map(function (step) { return Math.max(step.late_share * 100, 0.01); }).concat([1, 0.01]);
  var option = baseOption();
  option.grid = [{ left: 64, right: 16, top: 58, height: 150, outerBoundsMode: "none" }, { left: 64, right: 16, top: 254, height: 120, outerBoundsMode: "none" }];
  var below = function (grid, more) {
    var x = logAxis(rates, shown, Object.assign({ gridIndex: grid, axisLine: { show: true, onZero: false, lineStyle: { color: variable("line-strong") } }, splitLine: { show: false } }, more));
    x.min = Math.min.apply(null, rates) * 0.95;
    x.max = Math.max.apply(null, rates) * 1.05;
    delete x.axisLabel.customValues;
    delete x.axisTick.customValues;
    return x;
  };
  option.xAxis = [below(0, {}), below(1, { name: cases[0].capacity.unit + " sent", nameLocation: "middle", nameGap: 28 })];
  option.yAxis = [logAxis(times, shownMs, { gridIndex: 0, name: "99th percentile" }), logAxis(shares, function (v) { return shown(v) + " %"; }, { gridIndex: 1, name: "late or skipped" })];
  option.yAxis.forEach(function (one) { one.nameTextStyle = { color: variable("muted"), align: "left", padding: [0, 0, 0, -44] }; });
  option.legend = { top: 0, left: 0, textStyle: { color: variable("text") }, data: cases.map(function (found) { return label(found.id); }) };
  option.tooltip.trigger = "item";
  option.tooltip.formatter = function (at) { return capacityTip(at.data); };
  option.series = [];
  cases.forEach(function (found) {
    var colour = variable(colourName(found.id));
    var dots = function (grid, pick) {
      return { type: "scatter", name: label(found.id), xAxisIndex: grid, yAxisIndex: grid, symbol: isVolatile(found.id) ? "circle" : symbolOf(found.id), symbolSize: 9, itemStyle: { color: colour },
        data: found.capacity.steps.filter(function (step) { return pick(step) !== null; }).map(function (step) {
          return { value: [step.rate, pick(step)], step: step, id: found.id, colour: colour,
            itemStyle: { color: step.failed_by ? variable("bg") : colour, borderColor: colour, borderWidth: 1.6 } };
        }) };
    };
    option.series.push(dots(0, function (step) { return step.p99_us ? step.p99_us / 1000 : null; }));
    option.series.push(dots(1, function (step) { return Math.max(step.late_share * 100, 0.01); }));
  });
  var line = function (grid, values) {
    option.series.push({ type: "line", silent: true, xAxisIndex: grid, yAxisIndex: grid, data: [], markLine: { symbol: "none", label: { show: false },
      lineStyle: { color: variable("muted"), type: "dashed" }, data: values.map(function (value) { return { yAxis: value }; }) } });
  };
  line(0, limits);
  line(1, [1]);
  return { option: option, height: 434 };
}

function capacityTip(data) {
  var step = data.step;
  return tip(label(data.id) + ", trial " + step.trial + ", step " + step.step + ": " + (step.failed_by || "passed"), [
    { name: "sent, 1/s", value: shown(step.rate), colour: data.colour },
    { name: "99th percentile", value: step.p99_us ? shownMs(step.p99_us / 1000) : "skipped" },
    { name: "late or skipped", value: shown(step.late_share * 100) + " %" },
    { name: "seconds without a commit", value: shown(step.silent_s) }
  ]);
}
