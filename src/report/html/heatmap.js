/* Latencies over time of one trial: a column for each stretch of time, a row for each latency, the colour is the count. */

/** Colours from few operations to many: from the background's side to the text's. */
function heatColour(share) {
  var low = mixed(variable("io3"), -0.72), middle = variable("io2"), high = mixed(variable("io1"), 0.72);
  return share < 0.5 ? blended(low, middle, share * 2) : blended(middle, high, share * 2 - 1);
}

function blended(from, to, share) {
  var parse = function (hex) { return [1, 3, 5].map(function (at) { return parseInt(hex.substr(at, 2), 16); }); };
  var a = parse(from), b = parse(to);
  return "#" + a.map(function (v, i) { return ("0" + Math.round(v + (b[i] - v) * share).toString(16)).slice(-2); }).join("");
}

/** Lowest latency of a row, milliseconds. */
function rowFloor(map, row) { return Math.pow(10, row / map.rows_per_decade) / 1000; }

/** Cells as [from second, to second, from ms, to ms, count]. */
function heatCells(map, length) {
  var cells = [], view = viewOf(length);
  map.columns.forEach(function (column, i) {
    var from = i * map.bucket_s, to = Math.min(length, from + map.bucket_s);
    if (to < view.from || from > view.to) return;
    column[1].forEach(function (count, k) {
      if (count > 0) cells.push([from, to, rowFloor(map, column[0] + k), rowFloor(map, column[0] + k + 1), count]);
    });
  });
  return cells;
}

function heatMost(map) {
  return map.columns.reduce(function (most, column) { return column[1].reduce(function (a, b) { return Math.max(a, b); }, most); }, 1);
}

function heatmapOption(trial, length) {
  var map = trial.heatmap, cells = heatCells(map, length), most = Math.log(heatMost(map) + 1), option = baseOption();
  var ends = [].concat.apply([], cells.map(function (cell) { return [cell[2], cell[3] * 0.9999]; }));
  option.tooltip = { show: false };
  option.grid = { left: TIME_LEFT, right: TIME_RIGHT, top: 8, bottom: 22, outerBoundsMode: "none" };
  option.xAxis = timeAxis(length, 6, 10);
  option.yAxis = logAxis(ends, shownMs, { axisLabel: { color: variable("muted"), fontSize: 10 } });
  option.yAxis.axisLabel = Object.assign({}, option.yAxis.axisLabel, { formatter: shownMs, customValues: option.yAxis.axisTick.customValues, hideOverlap: true });
  option.series = [{ type: "custom", silent: true, clip: true, animation: false, data: cells, encode: { x: [0, 1], y: [2, 3] }, progressive: 0,
    renderItem: function (at, api) {
      var low = api.coord([api.value(0), api.value(2)]), high = api.coord([api.value(1), api.value(3)]);
      var box = echarts.graphic.clipRectByRect({ x: low[0], y: high[1], width: Math.max(1, high[0] - low[0] + 0.3), height: low[1] - high[1] + 0.3 },
        { x: at.coordSys.x, y: at.coordSys.y, width: at.coordSys.width, height: at.coordSys.height });
      return box && { type: "rect", shape: box, style: { fill: heatColour(Math.log(api.value(4) + 1) / most) } };
    } }, checkpointMarks(trial, length, variable("text"), {})];
  return { option: option, height: 200 };
}

/** What a column holds: its operations and where most of them lie. */
function heatWords(map, second) {
  var column = map.columns[bucketAt(second, map.bucket_s)];
  if (!column || !column[1].length) return "no operation";
  var all = column[1].reduce(function (a, b) { return a + b; }, 0);
  var top = column[1].indexOf(Math.max.apply(null, column[1]));
  return shown(all) + " operations: " + shownMs(rowFloor(map, column[0])) + " – " + shownMs(rowFloor(map, column[0] + column[1].length)) +
    ", most at " + shownMs(rowFloor(map, column[0] + top)) + " – " + shownMs(rowFloor(map, column[0] + top + 1));
}

/** The scale of colours: from one operation to the most of a cell. */
function heatLegend(map) {
  var most = heatMost(map), bar = element("span", { "class": "heat-scale", "aria-hidden": "true" });
  for (var i = 0; i < 12; i++) {
    var step = element("span", {});
    step.style.background = heatColour(i / 11);
    bar.append(step);
  }
  return element("span", {}, ["1 ", bar, " " + shown(most) + " operations in " + (map.bucket_s === 1 ? "a second" : shownSpan(map.bucket_s)) + " (log scale)"]);
}
